// Best-fit decreasing: pieces of documents into rows of a fixed capacity, with little room left over.
//
// Pieces are taken by falling length, those of equal length by rising number, and each goes to the row with the least
// room that still holds it; of rows with equal room, to the one that came to have it last. One bucket a length, so that
// the order is counted, not sorted, and the fullest row that fits is found through a tree of bits over the buckets:
// O(pieces + capacity), times a tree of log64(capacity) levels.
//
// No bin packing by another rule that needs no more than this is better in the worst case: 11/9 of the optimum
// (Johnson 1973). Documents of natural lengths are far from it, as the short ones fill what the long ones leave.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace llmctl::data {

// rows[i]: the row of piece i; rows are numbered from 0, in the order in which they were begun.
struct BestFit {
  std::vector<int32_t> rows;
  int32_t row_count = 0;
};

// Lengths are in [1, capacity]; fewer than 2^31 of them.
BestFit PackBestFitDecreasing(absl::Span<const int32_t> lengths, int32_t capacity);

}  // namespace llmctl::data
