#include "worker/data/normalize/text_normalizer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";  // U+FEFF

bool IsControl(uint8_t c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F; }

// Whether text may be left as it is, for a block that the compiler can take many bytes of at a time.
constexpr size_t kBlock = 64;

bool MayNeedCleaning(const char* block) {
  uint8_t found = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    uint8_t c = block[i];
    // C2 80 .. C2 9F are the C1 controls.
    found |= static_cast<uint8_t>((c < 0x20) & (c != '\t') & (c != '\n')) | (c == 0x7F) | (c == 0xC2);
  }
  return found != 0;
}

bool IsC1(absl::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]) == 0xC2 && static_cast<uint8_t>(text[at + 1]) < 0xA0;
}

// Where the first line end or control character is that something may be done about; the size if there is none.
size_t FindControl(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (at + kBlock <= text.size() && !MayNeedCleaning(text.data() + at)) {
      at += kBlock;
      continue;
    }
    for (size_t end = std::min(at + kBlock, text.size()); at < end; ++at) {
      if (IsControl(text[at]) || IsC1(text, at)) return at;
    }
  }
  return at;
}

bool IsAscii(absl::string_view text) {
  size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {
    uint8_t high = 0;
    for (size_t i = 0; i < kBlock; ++i) high |= static_cast<uint8_t>(text[at + i]);
    if (high >= 0x80) return false;
  }
  return std::all_of(text.begin() + at, text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// Unicode's White_Space but the newline, and the byte order mark, which is a space without width.
bool IsSpace(char32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r' && code != '\n') || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000 || code == 0xFEFF;
}

absl::string_view Trimmed(absl::string_view text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  for (const char* at = begin; begin < end; begin = at) {
    char32_t code = NextCodePoint(at);
    if (code != '\n' && !IsSpace(code)) break;
  }
  for (const char* at = end; begin < end; end = at) {
    char32_t code = PreviousCodePoint(at);
    if (code != '\n' && !IsSpace(code)) break;
  }
  return {begin, static_cast<size_t>(end - begin)};
}

// Of text that is trimmed.
std::string Collapsed(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  int newlines = 0;
  bool space = false;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    const char* start = at;
    char32_t code = NextCodePoint(at);
    if (code == '\n') {
      ++newlines;
    } else if (IsSpace(code)) {
      space = true;
    } else {
      if (newlines > 0) {
        out.append(std::min(newlines, 2), '\n');
      } else if (space) {
        out += ' ';
      }
      newlines = 0;
      space = false;
      out.append(start, at);
    }
  }
  return out;
}

// One document on its way.
class Run {
 public:
  Run(absl::string_view text, std::string& scratch, Repairs& repairs)
      : text_(text), scratch_(scratch), repairs_(repairs) {}

  void TakeMarks() {
    while (absl::ConsumePrefix(&text_, kByteOrderMark)) ++repairs_.byte_order_marks;
  }

  void Clean(const NormalizeSettings& settings) {
    size_t at = FindControl(text_);
    if (at == text_.size()) return;
    std::string out;
    out.reserve(text_.size());
    out.append(text_.data(), at);
    for (; at < text_.size(); ++at) {
      char c = text_[at];
      bool c1 = IsC1(text_, at);
      if (c == '\r' && settings.newlines == NewlinePolicy::kLineFeed) {
        ++repairs_.carriage_returns;
        if (at + 1 == text_.size() || text_[at + 1] != '\n') out += '\n';
      } else if ((!c1 && !IsControl(c)) || c == '\r' || settings.controls == ControlPolicy::kKeep) {
        out += c;
      } else {
        ++repairs_.control_characters;
        at += c1;
      }
    }
    Become(std::move(out));
  }

  void Compose(UnicodeForm form) {
    if (form == UnicodeForm::kNone || IsAscii(text_) || IsInForm(form, text_)) return;
    ++repairs_.normalized_documents;
    Become(ToForm(form, text_));
  }

  void Tidy(WhitespacePolicy policy) {
    if (policy == WhitespacePolicy::kKeep) return;
    absl::string_view trimmed = Trimmed(text_);
    bool changed = trimmed.size() != text_.size();
    text_ = trimmed;
    if (policy == WhitespacePolicy::kCollapse) {
      std::string collapsed = Collapsed(text_);
      if (collapsed != text_) {
        changed = true;
        Become(std::move(collapsed));
      }
    }
    repairs_.trimmed_documents += changed;
  }

  absl::string_view text() const { return text_; }

 private:
  void Become(std::string text) {
    scratch_ = std::move(text);
    text_ = scratch_;
  }

  absl::string_view text_;
  std::string& scratch_;
  Repairs& repairs_;
};

}  // namespace

absl::string_view TextNormalizer::Normalize(absl::string_view text, std::string& scratch, Repairs& repairs) const {
  Run run(text, scratch, repairs);
  run.TakeMarks();
  run.Clean(settings_);
  run.Compose(settings_.form);
  run.Tidy(settings_.whitespace);
  // What stood before one may have gone.
  run.TakeMarks();
  return run.text();
}

bool HasContent(absl::string_view text) {
  static constexpr absl::string_view kBlanks[] = {" ",  "\t",       "\n",           "\r",          "\v",
                                                  "\f", "\xC2\xA0", "\xE3\x80\x80", kByteOrderMark};
  while (!text.empty()) {
    auto begins = [&](absl::string_view blank) { return absl::StartsWith(text, blank); };
    auto blank = std::find_if(std::begin(kBlanks), std::end(kBlanks), begins);
    if (blank == std::end(kBlanks)) return true;
    text.remove_prefix(blank->size());
  }
  return false;
}

}  // namespace llmctl::data
