// The distinct shingles of a document, to compare two of them exactly.
//
// 32 bits of each hash are kept: that two different shingles of a pair of documents of 10,000 shingles share them moves
// their similarity by 2e-6. Of giant documents only the kShinglesMax least are kept, in memory that does not grow with
// the document; the similarity of two such sets is that of their common bottom sketch, 0.4 % off at most as a rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace llmctl::data {

class ShingleSet {
 public:
  static constexpr size_t kShinglesMax = 1 << 16;

  void Clear();
  void Add(absl::Span<const uint64_t> shingles);

  // Ascending and distinct; valid until the next Add or Clear.
  absl::Span<const uint32_t> Sorted();

 private:
  void Compact();

  std::vector<uint32_t> values_;
  size_t sorted_ = 0;  // so many of values_ are ascending and distinct
};

// |a and b| / |a or b|; 1 if both are empty. Both ascending and distinct.
double JaccardOf(absl::Span<const uint32_t> a, absl::Span<const uint32_t> b);

}  // namespace llmctl::data
