#include "worker/data/pii/text_scan.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

namespace llmctl::data {

LetterClass LetterClassOf(char32_t code) {
  constexpr uint32_t kInNames = U_GC_L_MASK | U_GC_M_MASK | U_GC_ND_MASK;
  if ((U_GET_GC_MASK(static_cast<UChar32>(code)) & kInNames) == 0) return LetterClass::kNone;
  UErrorCode error = U_ZERO_ERROR;
  switch (uscript_getScript(static_cast<UChar32>(code), &error)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_BOPOMOFO:
    case USCRIPT_HANGUL:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
      return LetterClass::kUnspaced;
    default:
      // The mark that lengthens a vowel belongs to both kana, and to no script.
      return code == 0x30fc ? LetterClass::kUnspaced : LetterClass::kSpaced;
  }
}

bool TextScan::WordBefore(size_t at) const {
  if (at == 0) return false;
  if (static_cast<uint8_t>(text[at - 1]) < 0x80) return IsWordByte(text[at - 1]);
  const char* position = text.data() + at;
  return LetterClassOf(PreviousCodePoint(position)) == LetterClass::kSpaced;
}

bool TextScan::WordAt(size_t at) const {
  if (at >= text.size()) return false;
  if (static_cast<uint8_t>(text[at]) < 0x80) return IsWordByte(text[at]);
  const char* position = text.data() + at;
  return LetterClassOf(NextCodePoint(position)) == LetterClass::kSpaced;
}

absl::string_view TextScan::WindowBefore(size_t at, size_t bytes) const {
  size_t begin = at > bytes ? at - bytes : 0;
  while (begin < at && IsContinuation(text[begin])) ++begin;
  Count(at - begin);
  return text.substr(begin, at - begin);
}

absl::string_view TextScan::WindowFrom(size_t at, size_t bytes) const {
  size_t end = at + bytes < text.size() ? at + bytes : text.size();
  while (end > at && end < text.size() && IsContinuation(text[end])) --end;
  Count(end - at);
  return text.substr(at, end - at);
}

absl::string_view TextScan::ContextBefore(size_t at, size_t bytes) const {
  const absl::string_view window = WindowBefore(at, bytes);
  const size_t end = window.rfind('>');
  return end == absl::string_view::npos ? window : window.substr(end + 1);
}

absl::string_view TextScan::ContextFrom(size_t at, size_t bytes) const {
  const absl::string_view window = WindowFrom(at, bytes);
  return window.substr(0, window.find('<'));
}

}  // namespace llmctl::data
