// The n-grams of one order, from 2 on, on their way from adjusted counts to probabilities.
//
//   Add           every n-gram of the order; sorted so that those with the same context stand together
//   Smooth        discounts each count by its context's sum; the contexts' back-off weights go to a file
//   Interpolate   adds the probability that the next shorter context gives, which that order's Interpolate has written
//
// For orders n and n + 1: Smooth(n), Smooth(n + 1), Interpolate(n), which needs the weights of n + 1.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

#include "worker/data/spill/external_sort.h"

namespace llmctl::data {

struct Discounts {
  std::array<double, 3> amounts{};  // of counts 1, 2, 3 and more
  double Of(uint64_t count) const { return count == 0 ? 0 : amounts[count < 3 ? count - 1 : 2]; }
};

struct SmootherPlace {
  SpillFiles* files;
  std::string folder;
  uint64_t adjusted_bytes;  // memory until Smooth
  uint64_t smoothed_bytes;  // from Smooth to Interpolate
};

// An n-gram of the model; `words` from the last to the first.
struct ModelGram {
  const uint32_t* words;
  double probability;
  double weight;  // back-off; 1 if it is no context
};

class NgramSmoother {
 public:
  virtual ~NgramSmoother() = default;
  virtual absl::Status Add(const uint32_t* words, uint64_t adjusted, bool pruned) = 0;
  virtual absl::Status Smooth(const Discounts& discounts) = 0;
  // `words` is that of the probabilities of single words, which order 2 needs. `highest`: there is no order above.
  virtual absl::Status Interpolate(absl::Span<const double> words, bool highest,
                                   absl::FunctionRef<absl::Status(const ModelGram&)> emit) = 0;
};

// `order` from 2 to 6.
std::unique_ptr<NgramSmoother> MakeNgramSmoother(int order, const SmootherPlace& place);

// The back-off weights of single words, by id, where order 2 has been smoothed; 1 for words that are no contexts.
absl::StatusOr<std::vector<double>> ReadWordWeights(const SmootherPlace& place, uint32_t vocabulary);

}  // namespace llmctl::data
