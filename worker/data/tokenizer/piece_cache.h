// The ids of pieces that were encoded before: most of a text's pieces are words that occur again and again.
//
// Holds pieces of up to 15 bytes and 4 tokens, which are nearly all. A line of the processor's cache has two of them,
// the one used last first; a third that falls on the line puts out the second. So a look costs one miss at most, and
// the memory is what the constructor says, whatever the text.
//
// One per thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "worker/data/tokenizer/piece_key.h"

namespace llmctl::data {

class PieceCache {
 public:
  static constexpr size_t kIdsMax = 4;

  struct Entry {
    PieceKey key;
    std::array<int32_t, kIdsMax> ids = {-1, -1, -1, -1};  // -1: none
  };

  // Takes at most `bytes`, and at least two lines.
  explicit PieceCache(size_t bytes);

  // Null if it is not here.
  const Entry* Find(const PieceKey& key) {
    Line& line = lines_[key.Hash() >> shift_];
    if (line.entries[0].key == key) return &line.entries[0];
    if (!(line.entries[1].key == key)) return nullptr;
    std::swap(line.entries[0], line.entries[1]);
    return &line.entries[0];
  }

  void Insert(const Entry& entry) {
    Line& line = lines_[entry.key.Hash() >> shift_];
    line.entries[1] = line.entries[0];
    line.entries[0] = entry;
  }

 private:
  struct alignas(64) Line {
    std::array<Entry, 2> entries;
  };

  std::vector<Line> lines_;
  int shift_;
};

}  // namespace llmctl::data
