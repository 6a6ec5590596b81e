// How much of each group a run is to see: weights of sources and languages from what there is of each.
//
// Pure functions. A weight is a share of the tokens that are trained on; the sampler keeps to it exactly
// (shards/sampler.h), repeating groups that run out. What comes out goes into GroupInfo::weight of a split.
//
//   MixSettings settings{.method = MixMethod::kTemperature, .alpha = 0.7};
//   LLM_ASSIGN_OR_RETURN(std::vector<double> weights, MixWeights(settings, split.groups));
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "worker/data/shards/dataset.h"

namespace llmctl::data {

enum class MixMethod {
  kProportional,  // as much as there is
  kExplicit,      // as told
  kTemperature,   // tokens^alpha: 1 is proportional, 0 is all alike (Conneau et al. 2020 use 0.3, mT5 0.3)
  kUniMax,        // all alike, but none oftener than epochs_max (Chung et al. 2023)
};

struct MixSettings {
  MixMethod method = MixMethod::kProportional;
  // Explicit: by group ("wiki/en") or by source ("wiki": shared by its groups as they have tokens). They need not
  // sum to 1. Each group has one, and each names a group.
  std::map<std::string, double> weights;
  double alpha = 1;
  // UniMax: what will be trained on; 0: as many tokens as there are.
  int64_t budget_tokens = 0;
  double epochs_max = 4;

  // InvalidArgument lists all faults, by the names that users write.
  absl::Status Validate() const;
};

// Weights of `groups`, in their order, that sum to 1; a group without tokens has none. InvalidArgument if explicit
// weights and groups do not fit each other, or no group has tokens and a weight.
absl::StatusOr<std::vector<double>> MixWeights(const MixSettings& settings, absl::Span<const GroupInfo> groups);

// How often a run of `budget_tokens` sees each group: weight * budget / tokens.
std::vector<double> Epochs(absl::Span<const double> weights, absl::Span<const GroupInfo> groups,
                           int64_t budget_tokens);

}  // namespace llmctl::data
