#include "worker/engine/optim/adamw.h"

namespace llmctl::engine {

void AdamW::Update(Model& model, double learning_rate, double gradient_factor) {
  ++updates_;
  kernels::Bf16* rounded = model.weights();
  for (const Parameter& parameter : model.parameters()) {
    int64_t offset = parameter.offset;
    kernels_.adamw({.count = parameter.count,
                    .learning_rate = learning_rate,
                    .beta1 = config_.beta1,
                    .beta2 = config_.beta2,
                    .epsilon = config_.epsilon,
                    .weight_decay = parameter.decay ? config_.weight_decay : 0.0,
                    .step = updates_,
                    .gradient_scale = gradient_factor,
                    .gradient = model.gradients() + offset,
                    .master = model.master() + offset,
                    .first_moment = moments_.first + offset,
                    .second_moment = moments_.second + offset,
                    .weights = rounded == nullptr ? nullptr : rounded + offset});
  }
  if (rounded == nullptr) model.CastWeights();
}

}  // namespace llmctl::engine
