#include "worker/data/text/characters.h"

#include <algorithm>
#include <map>

#include <unicode/uchar.h>

#include "worker/data/text/rule_tables.h"

namespace llmctl::data {
namespace {

constexpr char32_t kCodePoints = 0x110000;

uint32_t UnicodeClasses(UChar32 code) {
  uint32_t category = U_GET_GC_MASK(code);
  uint32_t classes = 0;
  if (category & U_GC_L_MASK) classes |= kLetter;
  if (category & U_GC_P_MASK) classes |= kPunctuation;
  if (category & U_GC_ND_MASK) classes |= kDecimal;
  bool numeric = u_getIntPropertyValue(code, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
  if (category & U_GC_L_MASK || numeric || code == '_') classes |= kWordCharacter;
  UCharDirection direction = u_charDirection(code);
  if (category & U_GC_ZS_MASK || direction == U_WHITE_SPACE_NEUTRAL || direction == U_BLOCK_SEPARATOR ||
      direction == U_SEGMENT_SEPARATOR) {
    classes |= kSpace;
  }
  if ((code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
      code == 0x2029) {
    classes |= kLineEnd;
  }
  return classes;
}

std::vector<uint32_t> AllClasses() {
  std::vector<uint32_t> all(kCodePoints);
  for (char32_t code = 0; code < kCodePoints; ++code) all[code] = UnicodeClasses(code);
  absl::Span<const MaskRun> runs = MaskRuns();
  for (size_t i = 0; i < runs.size(); ++i) {
    char32_t end = i + 1 < runs.size() ? runs[i + 1].first : kCodePoints;
    for (char32_t code = runs[i].first; code < end; ++code) all[code] |= runs[i].classes;
  }
  for (char32_t code = 0; code < kCodePoints; ++code) {
    // Digits stand before units; the last ones are prefixes, suffixes and infixes under conditions.
    bool named = code >= '0' && code <= '9';
    for (char32_t mark : {'+', '-', '*', '^', '.', ',', ':', '<', '>', '=', '/', '~', '%', '$'}) named |= code == mark;
    if (named || (all[code] & (kPrefix | kSuffix | kIcon | kQuote | kCurrency)) != 0) all[code] |= kMaySplit;
  }
  return all;
}

// The byte that UTF-8 begins `code` with.
uint8_t FirstByte(char32_t code) {
  if (code < 0x80) return code;
  if (code < 0x800) return 0xc0 | code >> 6;
  if (code < 0x10000) return 0xe0 | code >> 12;
  return 0xf0 | code >> 18;
}

}  // namespace

const CharacterTable& CharacterTable::Get() {
  static const CharacterTable* const table = new CharacterTable();
  return *table;
}

CharacterTable::CharacterTable() {
  std::vector<uint32_t> all = AllClasses();
  std::map<std::vector<uint32_t>, uint32_t> known;
  for (size_t block = 0; block < block_of_.size(); ++block) {
    std::vector<uint32_t> classes(all.begin() + block * 256, all.begin() + (block + 1) * 256);
    auto [at, is_new] = known.try_emplace(classes, blocks_.size());
    if (is_new) blocks_.insert(blocks_.end(), classes.begin(), classes.end());
    block_of_[block] = at->second;
  }
  may_start_space_.fill(false);
  for (char32_t code = 0; code < kCodePoints; ++code) {
    if (all[code] & kSpace) may_start_space_[FirstByte(code)] = true;
  }
}

absl::string_view CharacterTable::StripStart(absl::string_view text) const {
  while (!text.empty()) {
    const char* at = text.data();
    if (!Is(NextCodePoint(at), kSpace)) break;
    text.remove_prefix(at - text.data());
  }
  return text;
}

absl::string_view CharacterTable::StripEnd(absl::string_view text) const {
  while (!text.empty()) {
    const char* end = text.data() + text.size();
    if (!Is(PreviousCodePoint(end), kSpace)) break;
    text = text.substr(0, end - text.data());
  }
  return text;
}

}  // namespace llmctl::data
