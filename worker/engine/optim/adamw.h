// AdamW (Loshchilov and Hutter 2019) over the flat vectors of a model.
//
// With g the clipped gradient and k the number of updates, this one included:
//   m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
//   w = w (1 - rate decay)               w = w - rate / (1 - beta1^k) * m / (sqrt(v / (1 - beta2^k)) + epsilon)
// Weights of norms do not decay (Parameter::decay). Everything is fp32, as PyTorch's AdamW does it; the weights that
// the layers read are written in the same pass over memory.
//
// The number of updates is part of the state: a skipped step is no update.
#pragma once

#include <cstdint>

#include "worker/contract/trainer_config.h"
#include "worker/engine/kernels/isa.h"
#include "worker/engine/kernels/table.h"
#include "worker/engine/models/model.h"

namespace llmctl::engine {

class AdamW {
 public:
  // Both moments as long as the flat vectors of the model and zero at the start; kept by the caller.
  struct Moments {
    float* first = nullptr;
    float* second = nullptr;
  };

  // `isa` as kernels::ResolveIsa returns it.
  AdamW(const contract::OptimizerConfig& config, Moments moments, kernels::Isa isa)
      : config_(config), moments_(moments), kernels_(kernels::Kernels<float>(isa).optimizer) {}

  // Gradients are taken times `gradient_factor` (the clip factor). Leaves the model ready for its next pass.
  void Update(Model& model, double learning_rate, double gradient_factor);

  const Moments& moments() const { return moments_; }
  // Updates done so far; set when a state is loaded.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  const contract::OptimizerConfig config_;
  const Moments moments_;
  const kernels::OptimizerKernels<float>& kernels_;
  int64_t updates_ = 0;
};

}  // namespace llmctl::engine
