// What each Unicode character is to the fast recipe: part of a word (and as which character), a gap, or nothing.
//
// Characters are folded as far as near duplicates should not differ by them: lower case, canonical decomposition
// without its marks (so "É" and "é" are "e"), every digit of every script '0'. Marks and invisible format characters
// are nothing; spaces, controls and punctuation are gaps. In scripts written without spaces (Han, kana, Thai, Lao,
// Khmer, Burmese) each character is a word: whole sentences would be one word otherwise, and nothing near each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmctl::data {

class FoldTable {
 public:
  static constexpr uint32_t kGap = 0;
  static constexpr uint32_t kNothing = 1;
  static constexpr uint32_t kDigit = '0';
  // Set beside the folded character if it is a word of its own.
  static constexpr uint32_t kAlone = 1u << 31;

  // About 30 ms and 100 KB; made once and shared.
  FoldTable();

  uint32_t operator[](uint32_t code_point) const {
    return entries_[blocks_[code_point >> 8] * size_t{256} + (code_point & 255)];
  }
  // The same for U+0000 to U+007F, in one byte; none is kNothing.
  const std::array<uint8_t, 128>& ascii() const { return ascii_; }

 private:
  std::array<uint16_t, 0x1100> blocks_;
  std::vector<uint32_t> entries_;
  std::array<uint8_t, 128> ascii_;
};

}  // namespace llmctl::data
