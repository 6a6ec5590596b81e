// The classes of characters that pre-tokenisers tell apart: \p{L}, \p{N}, \s and all other.
//
// The classes are those of Unicode 16.0, as in the regular expression engines of tokenizers 0.23.3 and tiktoken 0.14.0
// (compared over all code points), not those of the machine's ICU: token ids must not change with a system's upgrade.
// char_class_ranges.cc is written by make_char_class_ranges.cc out of ICU and what Unicode 16.0 added to it; a test
// holds the two together.
//
// Memory: 37 KB per table. Constant after construction: any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace llmctl::data {

enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

struct CharRange {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};

// All that is not kOther, ascending.
absl::Span<const CharRange> CharClassRanges();

class CharClassTable {
 public:
  // A character of the text: what it is and how many bytes it takes.
  struct Char {
    CharClass char_class;
    uint8_t bytes;
  };

  CharClassTable();

  CharClass Of(uint32_t code_point) const {
    return static_cast<CharClass>(blocks_[block_of_[code_point >> kBlockBits] + (code_point & (kBlockSize - 1))]);
  }

  // Of an ASCII byte.
  CharClass OfAscii(uint8_t byte) const { return static_cast<CharClass>(blocks_[byte]); }

  // The character at `at`, which is before `end`. A byte that begins no whole UTF-8 sequence is a character of its own,
  // of class kOther.
  Char At(const char* at, const char* end) const {
    uint8_t byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) return {OfAscii(byte), 1};
    return AtMultibyte(at, end);
  }

 private:
  static constexpr int kBlockBits = 7;
  static constexpr uint32_t kBlockSize = 1u << kBlockBits;

  Char AtMultibyte(const char* at, const char* end) const;

  std::vector<uint16_t> block_of_;  // by code point / kBlockSize: where its block begins in blocks_
  std::vector<uint8_t> blocks_;     // equal blocks once; the first is that of ASCII
};

}  // namespace llmctl::data
