// GroupSchedule: whose turn is it? An endless sequence of groups that keeps to their weights at every moment, with
// random access.
//
// Weights become whole numbers that sum to a period: exactly, if a period up to 4,096 does that (0.7, 0.2, 0.1: ten),
// else to the nearest 2^-20, at least one. Within a period the k-th turn of a group of q turns lies in slots
// [floor(k T / q), ceil((k + 1) T / q)); of those groups whose next turn may come, the one that must come first has the
// slot. On one processor such a schedule always exists and this rule finds it (Baruah et al. 1996: pfair scheduling),
// so that of the first n slots, for every n, a group has floor(n q / T) or ceil(n q / T).
//
// 2 bytes a slot of the period: 2 MiB at most.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace llmctl::data {

class GroupSchedule {
 public:
  struct Turn {
    int group = 0;
    int64_t index = 0;  // how many turns the group has had before
  };

  GroupSchedule() = default;
  // InvalidArgument unless weights are finite, not negative and not all zero, and groups fewer than 2^15. A group of
  // weight 0 has no turns. Only ratios count.
  static absl::StatusOr<GroupSchedule> Create(const std::vector<double>& weights);

  Turn At(int64_t slot) const;
  int64_t period() const { return static_cast<int64_t>(slots_.size()); }
  // Turns in a period: what weights became.
  const std::vector<int64_t>& turns() const { return turns_; }

 private:
  std::vector<int64_t> turns_;
  // Group << 1 | whether it has had a turn more than floor(slot q / T).
  std::vector<uint16_t> slots_;
};

}  // namespace llmctl::data
