// The loss of the best model without context, which a trained one must beat.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace llmctl::data {

// Nats per token of the empirical distribution of `counts`: -sum p ln p. Over a training part, end-of-document tokens
// included, it is the loss of the best model that ignores context: what a trained model must beat.
inline double UnigramEntropy(const std::vector<int64_t>& counts) {
  double total = 0;
  for (int64_t count : counts) total += static_cast<double>(count);
  double entropy = 0;
  for (int64_t count : counts) {
    if (count > 0) entropy -= static_cast<double>(count) / total * std::log(static_cast<double>(count) / total);
  }
  return entropy;
}

}  // namespace llmctl::data
