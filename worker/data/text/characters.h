// What the rules ask about a character, answered by one table look-up.
//
// The table has a 32-bit mask for every code point, in two stages (blocks of 256 that many code points share): about
// 200 KB, built once from ICU and rule_tables.h. Properties that spaCy and datatrove ask of Python are those of ICU's
// version of Unicode, which may be newer than Python's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/text/utf8.h"

namespace llmctl::data {

enum CharacterClass : uint32_t {
  // From rule_tables.h.
  kSpacyAlpha = 1u << 0,     // spaCy's own idea of letters, of the scripts it lists
  kSpacyLower = 1u << 1,     // small letters, and letters of scripts without case
  kSpacyUpper = 1u << 2,     // capital ones, and the same
  kQuote = 1u << 3,
  kIcon = 1u << 4,
  kPrefix = 1u << 5,         // is cut off the front of a word
  kSuffix = 1u << 6,         // is cut off its end
  kBeforePeriod = 1u << 7,   // a period behind it is cut off
  kCurrency = 1u << 8,
  kSentenceEnd = 1u << 9,    // of spaCy's sentencizer
  kTerminal = 1u << 10,      // ends a line in FineWeb's sense
  kSymbol = 1u << 11,        // a word of these alone is no word to Gopher
  // From ICU.
  kSpace = 1u << 12,         // Python's str.isspace()
  kLetter = 1u << 13,        // str.isalpha(): category L
  kPunctuation = 1u << 14,   // category P
  kLineEnd = 1u << 15,       // str.splitlines()
  kWordCharacter = 1u << 16, // \w: letters, numbers, underscore
  kDecimal = 1u << 17,       // \d: category Nd
  // From both.
  kMaySplit = 1u << 18,      // no rule of the word splitter looks at a text without one of these
};

class CharacterTable {
 public:
  // Constant data, built at the first call; safe from any thread.
  static const CharacterTable& Get();

  uint32_t ClassesOf(char32_t code) const { return blocks_[block_of_[code >> 8] + (code & 0xff)]; }
  bool Is(char32_t code, uint32_t classes) const { return (ClassesOf(code) & classes) != 0; }

  // Whether white space may begin with this byte; a non-ASCII one has to be decoded to know.
  bool MayStartSpace(char byte) const { return may_start_space_[static_cast<uint8_t>(byte)]; }

  // First byte of white space in `text`, or its size.
  size_t FindSpace(absl::string_view text) const {
    const char* at = text.data();
    const char* end = at + text.size();
    while (at < end) {
      if (!MayStartSpace(*at)) {
        ++at;
        continue;
      }
      const char* start = at;
      if (Is(NextCodePoint(at), kSpace)) return start - text.data();
    }
    return text.size();
  }
  // str.strip(), lstrip(), rstrip().
  absl::string_view Strip(absl::string_view text) const { return StripEnd(StripStart(text)); }
  absl::string_view StripStart(absl::string_view text) const;
  absl::string_view StripEnd(absl::string_view text) const;

 private:
  CharacterTable();

  std::array<uint32_t, 0x110000 / 256> block_of_;  // offset of the block in blocks_
  std::vector<uint32_t> blocks_;
  std::array<bool, 256> may_start_space_;
};

}  // namespace llmctl::data
