// AdamW (Loshchilov and Hutter 2019) over the flat vectors of a model.
//
// With g the clipped gradient and k the number of updates, this one included:
//   m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
//   w = w (1 - rate decay)               w = w - rate / (1 - beta1^k) * m / (sqrt(v / (1 - beta2^k)) + epsilon)
// Weights of norms do not decay (Parameter::decay). Everything is fp32, as PyTorch's AdamW does it; the two bias
// corrections are computed in fp64.
//
// The number of updates is part of the state: a skipped step is no update.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/contract/trainer_config.h"
#include "worker/engine/models/model.h"

namespace llmctl::engine {

class AdamW {
 public:
  // Both moments as long as the flat vectors of the model and zero at the start; kept by the caller.
  struct Moments {
    float* first = nullptr;
    float* second = nullptr;
  };

  AdamW(const contract::OptimizerConfig& config, Moments moments) : config_(config), moments_(moments) {}

  // Gradients are taken times `gradient_factor` (the clip factor).
  void Update(Model& model, double learning_rate, double gradient_factor);

  const Moments& moments() const { return moments_; }
  // Updates done so far; set when a state is loaded.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  contract::OptimizerConfig config_;
  Moments moments_;
  int64_t updates_ = 0;
};

}  // namespace llmctl::engine
