// Byte pair encoding of one piece: its bytes, and then again and again the pair of neighbours with the lowest rank made
// one, the leftmost first, until no pair has a rank.
//
// A short piece is searched for its lowest rank from one end to the other, which is quadratic but in cache; a long one
// keeps its pairs in a heap: O(n log n), so that a run of a million equal characters costs what other text costs.
//
// Owns the memory it works in; one per thread. Memory: 24 bytes per byte of the longest piece so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/merge_table.h"

namespace llmctl::data {

class PieceMerger {
 public:
  // `table` outlives the merger.
  explicit PieceMerger(const MergeTable& table) : table_(table) {}

  // Writes the ids of `piece`, which is not empty, to `out`, which has room for one a byte; returns how many.
  size_t Merge(absl::string_view piece, int32_t* out);

 private:
  static constexpr size_t kShort = 96;  // bytes

  // A token within a long piece, linked to its neighbours by their places.
  struct Node {
    int32_t id;  // -1: became part of the one before
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of this and the next; an entry of the heap with another is stale
  };

  size_t MergeShort(absl::string_view piece, int32_t* out);
  size_t MergeLong(absl::string_view piece, int32_t* out);
  void FillNodes(absl::string_view piece);
  void Rank(uint32_t at);

  const MergeTable& table_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank << 32 | place of the left one
};

}  // namespace llmctl::data
