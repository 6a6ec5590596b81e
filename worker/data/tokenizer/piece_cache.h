// The ids of pieces that were encoded before: most of a text's pieces are words that occur again and again.
//
// A piece has two places where it can be, side by side, the one used last first; a third that falls there puts out the
// second. So a look costs one miss of the processor's cache or two, and the memory is what the constructor says,
// whatever the text. Pieces of more bytes or ids than the parameters say are not for this cache.
//
// One per thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "worker/data/tokenizer/piece_key.h"

namespace llmctl::data {

template <size_t kPieceBytes, size_t kIds>
class PieceCache {
  static_assert(std::endian::native == std::endian::little, "a key's bytes lie in memory as the piece's do");

 public:
  static constexpr size_t kIdsMax = kIds;
  using Key = PieceKey<kPieceBytes>;

  struct Entry {
    Key key;
    std::array<int32_t, kIds> ids;  // -1: none

    Entry() { ids.fill(-1); }
  };

  // Takes at most `bytes`, and at least two pairs of places.
  explicit PieceCache(size_t bytes)
      : pairs_(std::bit_floor(std::max<size_t>(2, bytes / sizeof(Pair)))),
        shift_(64 - std::countr_zero(pairs_.size())) {}

  // Null if it is not here.
  const Entry* Find(const Key& key) {
    Pair& pair = pairs_[key.Hash() >> shift_];
    if (pair.entries[0].key == key) return &pair.entries[0];
    if (!(pair.entries[1].key == key)) return nullptr;
    std::swap(pair.entries[0], pair.entries[1]);
    return &pair.entries[0];
  }

  void Insert(const Entry& entry) {
    Pair& pair = pairs_[entry.key.Hash() >> shift_];
    pair.entries[1] = pair.entries[0];
    pair.entries[0] = entry;
  }

 private:
  struct alignas(64) Pair {
    std::array<Entry, 2> entries;
  };

  std::vector<Pair> pairs_;
  int shift_;
};

}  // namespace llmctl::data
