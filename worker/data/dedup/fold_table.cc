#include "worker/data/dedup/fold_table.h"

#include <map>

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

bool IsGap(int8_t category) {
  constexpr uint32_t kGaps = U_GC_Z_MASK | U_GC_P_MASK | U_GC_CC_MASK;
  return ((uint32_t{1} << category) & kGaps) != 0;
}

bool IsNothing(int8_t category) {
  constexpr uint32_t kNothing = U_GC_MN_MASK | U_GC_ME_MASK | U_GC_CF_MASK;
  return ((uint32_t{1} << category) & kNothing) != 0;
}

bool WrittenWithoutSpaces(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  switch (uscript_getScript(c, &error)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
      return true;
    default:
      return false;
  }
}

// The character left when the marks of its canonical decomposition are dropped; itself if more than one is.
UChar32 WithoutMarks(const icu::Normalizer2& nfd, UChar32 c) {
  icu::UnicodeString decomposed;
  if (!nfd.getDecomposition(c, decomposed)) return c;
  UChar32 base = 0;
  for (int32_t i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
    UChar32 part = decomposed.char32At(i);
    if (u_charType(part) == U_NON_SPACING_MARK) continue;
    if (base != 0) return c;
    base = part;
  }
  return base == 0 ? c : base;
}

uint32_t EntryOf(const icu::Normalizer2& nfd, UChar32 c) {
  int8_t category = u_charType(c);
  if (IsGap(category)) return FoldTable::kGap;
  // ASCII symbols ($ + < = > ^ ` | ~) separate words like the punctuation they are used as.
  if (c < 128 && !u_isalnum(c)) return FoldTable::kGap;
  if (IsNothing(category)) return FoldTable::kNothing;
  if (category == U_DECIMAL_DIGIT_NUMBER) return FoldTable::kDigit;
  if (category == U_UNASSIGNED || category == U_PRIVATE_USE_CHAR || category == U_SURROGATE) return c;
  uint32_t alone = WrittenWithoutSpaces(c) ? FoldTable::kAlone : 0;
  return static_cast<uint32_t>(u_tolower(WithoutMarks(nfd, c))) | alone;
}

}  // namespace

FoldTable::FoldTable() {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(error);
  CHECK(U_SUCCESS(error)) << "ICU has no data for NFD: " << u_errorName(error);
  std::map<std::vector<uint32_t>, uint16_t> known;
  for (uint32_t block = 0; block < blocks_.size(); ++block) {
    std::vector<uint32_t> entries(256);
    for (uint32_t i = 0; i < 256; ++i) entries[i] = EntryOf(*nfd, static_cast<UChar32>(block * 256 + i));
    auto [at, fresh] = known.emplace(std::move(entries), static_cast<uint16_t>(known.size()));
    if (fresh) entries_.insert(entries_.end(), at->first.begin(), at->first.end());
    blocks_[block] = at->second;
  }
  for (uint32_t c = 0; c < 128; ++c) ascii_[c] = static_cast<uint8_t>((*this)[c]);
}

}  // namespace llmctl::data
