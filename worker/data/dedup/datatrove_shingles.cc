#include "worker/data/dedup/datatrove_shingles.h"

#include <algorithm>

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <xxhash.h>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

// A document is simplified in pieces of about this size: nothing in the recipe looks across white space.
constexpr size_t kPieceBytes = 1 << 16;

// datatrove's PUNCTUATION without its controls.
constexpr absl::string_view kPunctuation =
    "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»";

bool IsControl(UChar32 c) { return c <= 8 || (c >= 11 && c <= 12) || (c >= 13 && c <= 31) || (c >= 127 && c < 160); }

// Python's str.isspace(), as far as it is no control.
bool IsSpace(UChar32 c) {
  return c == ' ' || c == '\t' || c == '\n' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool IsDigit(UChar32 c) { return u_charType(c) == U_DECIMAL_DIGIT_NUMBER; }

bool IsDecimalSeparator(UChar32 c) {
  return c == '.' || c == ',' || c == 0x060c || c == 0x066b || (c >= 0x2396 && c <= 0x2398);
}

// The end of the run of digits from `at` on.
int32_t SkipDigits(const icu::UnicodeString& text, int32_t at) {
  while (at < text.length() && IsDigit(text.char32At(at))) at = text.moveIndex32(at, 1);
  return at;
}

// The end of the number that begins at `at`: digits, and once a separator with digits behind it.
int32_t SkipNumber(const icu::UnicodeString& text, int32_t at) {
  at = SkipDigits(text, at);
  if (at >= text.length() || !IsDecimalSeparator(text.char32At(at))) return at;
  int32_t behind = text.moveIndex32(at, 1);
  int32_t end = SkipDigits(text, behind);
  return end > behind ? end : at;
}

class Simplifier {
 public:
  Simplifier() : punctuation_(icu::UnicodeString::fromUTF8({kPunctuation.data(), int32_t(kPunctuation.size())})) {
    UErrorCode error = U_ZERO_ERROR;
    nfd_ = icu::Normalizer2::getNFDInstance(error);
    CHECK(U_SUCCESS(error)) << "ICU has no data for NFD: " << u_errorName(error);
  }

  std::string Run(absl::string_view text) const {
    icu::UnicodeString lower = icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
    lower.toLower(icu::Locale::getRoot());
    icu::UnicodeString spaced = NumbersAndSpaces(lower);
    UErrorCode error = U_ZERO_ERROR;
    icu::UnicodeString decomposed = nfd_->normalize(spaced, error);
    CHECK(U_SUCCESS(error)) << "NFD of valid text: " << u_errorName(error);
    std::string out;
    WithoutMarks(decomposed).toUTF8String(out);
    size_t first = out.find_first_not_of(' ');
    return first == std::string::npos ? "" : out.substr(first, out.find_last_not_of(' ') + 1 - first);
  }

 private:
  bool IsGap(UChar32 c) const { return IsControl(c) || IsSpace(c) || punctuation_.indexOf(c) >= 0; }

  // Numbers are read before punctuation is taken away, which is part of them.
  icu::UnicodeString NumbersAndSpaces(const icu::UnicodeString& text) const {
    icu::UnicodeString out;
    bool gap = true;
    for (int32_t at = 0; at < text.length();) {
      UChar32 c = text.char32At(at);
      if (IsDigit(c)) {
        at = SkipNumber(text, at);
        c = '0';
      } else {
        at = text.moveIndex32(at, 1);
      }
      if (!IsGap(c)) {
        out.append(c);
        gap = false;
      } else if (!gap) {
        out.append(static_cast<UChar32>(' '));
        gap = true;
      }
    }
    return out;
  }

  static icu::UnicodeString WithoutMarks(const icu::UnicodeString& text) {
    icu::UnicodeString out;
    for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) {
      UChar32 c = text.char32At(at);
      if (u_charType(c) != U_NON_SPACING_MARK) out.append(c);
    }
    return out;
  }

  icu::UnicodeString punctuation_;
  const icu::Normalizer2* nfd_;
};

// The next piece of `text`, which is cut off it: up to the first white space after kPieceBytes.
absl::string_view TakePiece(absl::string_view& text) {
  size_t cut = text.find_first_of(" \n", std::min(kPieceBytes, text.size()));
  absl::string_view piece = text.substr(0, cut);
  text.remove_prefix(piece.size());
  return piece;
}

}  // namespace

std::string SimplifyAsDatatrove(absl::string_view text) {
  static const Simplifier* const simplifier = new Simplifier;
  return simplifier->Run(text);
}

int64_t DatatroveShingles::Read(absl::string_view text, ShingleScratch& scratch, Sink sink) const {
  std::string carried;  // the last words of the pieces before, that shingles of this one begin with
  int64_t total = 0;
  while (!text.empty()) {
    std::string simple = SimplifyAsDatatrove(TakePiece(text));
    scratch.words.clear();
    split_words_(simple, scratch.words);
    total += scratch.words.size();
    scratch.joined.assign(carried);
    scratch.starts.clear();
    for (size_t at = 0; at < carried.size(); at = carried.find(' ', at) + 1) scratch.starts.push_back(at);
    for (absl::string_view word : scratch.words) {
      scratch.starts.push_back(scratch.joined.size());
      scratch.joined.append(word.data(), word.size()).push_back(' ');
    }
    const size_t held = scratch.starts.size();
    scratch.starts.push_back(scratch.joined.size());
    scratch.shingles.clear();
    for (size_t i = 0; i + shingle_words_ <= held; ++i) {
      size_t start = scratch.starts[i];
      size_t bytes = scratch.starts[i + shingle_words_] - start - 1;  // without the last space
      scratch.shingles.push_back(XXH64(scratch.joined.data() + start, bytes, 0));
    }
    if (!scratch.shingles.empty()) sink(scratch.shingles);
    size_t kept = std::min(held, shingle_words_ - 1);
    carried = scratch.joined.substr(scratch.starts[held - kept]);
  }
  return total;
}

}  // namespace llmctl::data
