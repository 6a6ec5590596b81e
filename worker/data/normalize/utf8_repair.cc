#include "worker/data/normalize/utf8_repair.h"

#include <utility>

#include <simdjson.h>

namespace llmctl::data {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

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

}  // namespace

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

}  // namespace llmctl::data
