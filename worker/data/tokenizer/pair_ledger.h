// The pairs of neighbouring tokens in training: how often each occurs, where, and which is the most frequent.
//
// A pair is entered with the places where it came about. Its count then only falls, as its places go to other merges,
// so the queue may keep old counts: one that comes out on top is put back with its present count if that is another.
// Places are not taken out: whoever visits one looks whether the pair still stands there.
//
// Single-threaded. Memory: 4 bytes per place entered, about 50 per pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace llmctl::data {

struct TokenPair {
  int32_t left;
  int32_t right;
};

class PairLedger {
 public:
  struct Top {
    TokenPair pair;
    int64_t count;
    absl::Span<const uint32_t> places;  // valid until the next Enter
  };

  explicit PairLedger(size_t places_expected) { places_.reserve(places_expected); }

  void ChangeCount(TokenPair pair, int64_t change) { counts_[Key(pair)] += change; }

  // Makes room for `places` places of a pair whose count is there already; returns where SetPlace begins to fill it,
  // or nothing if the count is not positive.
  absl::optional<size_t> Enter(TokenPair pair, size_t places);
  void SetPlace(size_t at, uint32_t place) { places_[at] = place; }

  // Takes out the most frequent pair, of equals the one with the lowest ids.
  absl::optional<Top> TakeTop();

 private:
  struct Entry {
    int64_t count;
    uint64_t key;
    uint64_t first_place;
    uint32_t places;

    bool operator<(const Entry& other) const {
      if (count != other.count) return count < other.count;
      if (key != other.key) return key > other.key;
      return first_place > other.first_place;
    }
  };

  static uint64_t Key(TokenPair pair) {
    return static_cast<uint64_t>(static_cast<uint32_t>(pair.left)) << 32 | static_cast<uint32_t>(pair.right);
  }

  absl::flat_hash_map<uint64_t, int64_t> counts_;
  std::vector<Entry> queue_;  // a heap
  std::vector<uint32_t> places_;
};

}  // namespace llmctl::data
