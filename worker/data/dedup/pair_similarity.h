// How similar two documents of a plan are, from what their parts keep of them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/dedup/near_parts.h"

namespace llmctl::data {

// Remembers the first document of the last call: calls with the same one in a row read it once.
class PairSimilarity {
 public:
  // Exact if the plan's settings have a least Jaccard, else estimated.
  PairSimilarity(const NearPlan& plan, NearParts& parts)
      : exact_(plan.settings.jaccard_min.has_value()), parts_(parts) {}

  // 1 for two documents without a signature, which are only ever paired if they are equal.
  absl::StatusOr<double> Of(uint64_t first, uint64_t second);

 private:
  absl::StatusOr<double> Exact(uint64_t second, bool fresh);
  absl::StatusOr<double> Estimated(uint64_t second, bool fresh);

  const bool exact_;
  NearParts& parts_;
  uint64_t first_ = UINT64_MAX;
  std::vector<uint32_t> shingles_, other_shingles_;
  std::vector<uint8_t> sketch_, other_sketch_;
};

}  // namespace llmctl::data
