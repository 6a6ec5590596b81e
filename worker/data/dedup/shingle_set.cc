#include "worker/data/dedup/shingle_set.h"

#include <algorithm>

namespace llmctl::data {

void ShingleSet::Clear() {
  values_.clear();
  sorted_ = 0;
}

void ShingleSet::Add(absl::Span<const uint64_t> shingles) {
  for (uint64_t shingle : shingles) values_.push_back(static_cast<uint32_t>(shingle >> 32));
  if (values_.size() >= 2 * kShinglesMax) Compact();
}

absl::Span<const uint32_t> ShingleSet::Sorted() {
  Compact();
  return values_;
}

void ShingleSet::Compact() {
  if (sorted_ != values_.size()) {
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  }
  if (values_.size() > kShinglesMax) values_.resize(kShinglesMax);
  sorted_ = values_.size();
}

double JaccardOf(absl::Span<const uint32_t> a, absl::Span<const uint32_t> b) {
  size_t in_both = 0, in_any = 0, i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    in_both += a[i] == b[j];
    uint32_t least = std::min(a[i], b[j]);
    i += a[i] == least;
    j += b[j] == least;
    // The least kShinglesMax of the union are all known, whichever of the two was cut.
    if (++in_any == ShingleSet::kShinglesMax) break;
  }
  in_any = std::min(in_any + (a.size() - i) + (b.size() - j), ShingleSet::kShinglesMax);
  return in_any == 0 ? 1 : static_cast<double>(in_both) / in_any;
}

}  // namespace llmctl::data
