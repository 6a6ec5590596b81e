#include "worker/data/prepare/text_normalizer.h"

#include <algorithm>

#include <simdjson.h>

#include "absl/strings/match.h"

#include "worker/data/tokenizer/nfc.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";    // U+FFFD
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";  // U+FEFF

struct Sequence {
  size_t bytes;  // of the character, or of the part to be replaced
  bool valid;
};

// What a lead byte promises: the length and the range of the byte after it (which excludes overlong forms,
// surrogates and what is beyond U+10FFFF).
struct Lead {
  size_t bytes;
  uint8_t low;
  uint8_t high;
};

Lead LeadOf(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The sequence at the start of `bytes`, which is not empty.
Sequence NextSequence(absl::string_view bytes) {
  auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (at(0) < 0x80) return {1, true};
  Lead lead = LeadOf(at(0));
  if (lead.bytes == 0) return {1, false};
  for (size_t i = 1; i < lead.bytes; ++i) {
    uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (i == bytes.size() || at(i) < low || at(i) > high) return {i, false};
  }
  return {lead.bytes, true};
}

bool IsDroppedAscii(uint8_t c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F; }

bool NeedsCleaning(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t c = text[i];
    if (IsDroppedAscii(c)) return true;
    if (c == 0xC2 && static_cast<uint8_t>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

// Line ends and control characters; C2 80 .. C2 9F are the C1 controls.
void Clean(std::string& text, Repairs& repairs) {
  size_t out = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t c = text[i];
    if (c == '\r') {
      ++repairs.carriage_returns;
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      text[out++] = '\n';
    } else if (c == 0xC2 && static_cast<uint8_t>(text[i + 1]) < 0xA0) {
      ++repairs.control_characters;
      ++i;
    } else if (IsDroppedAscii(c)) {
      ++repairs.control_characters;
    } else {
      text[out++] = text[i];
    }
  }
  text.resize(out);
}

void Compose(std::string& text, Repairs& repairs) {
  bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (ascii || IsNfc(text)) return;
  text = ToNfc(text);
  ++repairs.normalized_documents;
}

}  // namespace

Repairs& Repairs::operator+=(const Repairs& other) {
  invalid_utf8 += other.invalid_utf8;
  lone_surrogates += other.lone_surrogates;
  byte_order_marks += other.byte_order_marks;
  control_characters += other.control_characters;
  carriage_returns += other.carriage_returns;
  normalized_documents += other.normalized_documents;
  return *this;
}

size_t FindInvalidUtf8(absl::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return absl::string_view::npos;
  size_t at = 0;
  while (at < bytes.size()) {
    Sequence sequence = NextSequence(bytes.substr(at));
    if (!sequence.valid) return at;
    at += sequence.bytes;
  }
  return absl::string_view::npos;
}

int64_t ReplaceInvalidUtf8(std::string& text) {
  size_t at = FindInvalidUtf8(text);
  if (at == absl::string_view::npos) return 0;
  int64_t replaced = 0;
  std::string out = text.substr(0, at);
  while (at < text.size()) {
    Sequence sequence = NextSequence(absl::string_view(text).substr(at));
    if (sequence.valid) {
      out.append(text, at, sequence.bytes);
    } else {
      out.append(kReplacement.data(), kReplacement.size());
      ++replaced;
    }
    at += sequence.bytes;
  }
  text = std::move(out);
  return replaced;
}

void NormalizeText(std::string& text, Repairs& repairs) {
  if (absl::StartsWith(text, kByteOrderMark)) {
    text.erase(0, kByteOrderMark.size());
    ++repairs.byte_order_marks;
  }
  if (NeedsCleaning(text)) Clean(text, repairs);
  Compose(text, repairs);
}

bool HasContent(absl::string_view text) {
  static constexpr absl::string_view kBlanks[] = {" ",  "\t",       "\n",           "\r",          "\v",
                                                  "\f", "\xC2\xA0", "\xE3\x80\x80", kByteOrderMark};
  while (!text.empty()) {
    size_t blank = 0;
    for (absl::string_view candidate : kBlanks) {
      if (absl::StartsWith(text, candidate)) blank = candidate.size();
    }
    if (blank == 0) return true;
    text.remove_prefix(blank);
  }
  return false;
}

}  // namespace llmctl::data
