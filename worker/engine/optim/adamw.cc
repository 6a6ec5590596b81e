#include "worker/engine/optim/adamw.h"

#include <cmath>

namespace llmctl::engine {
namespace {

// One update's numbers, in the type that the loop computes in.
struct Coefficients {
  float gradient_factor;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;            // rate / (1 - beta1^k)
  float inverse_correction2;  // 1 / sqrt(1 - beta2^k)
  float epsilon;
  float keep;                 // 1 - rate * decay
};

struct Range {
  const float* gradients;
  float* first;
  float* second;
  float* weights;
  int64_t count;
};

void UpdateRange(const Coefficients& c, const Range& range) {
  for (int64_t i = 0; i < range.count; ++i) {
    float g = range.gradients[i] * c.gradient_factor;
    float m = c.beta1 * range.first[i] + c.one_minus_beta1 * g;
    float v = c.beta2 * range.second[i] + c.one_minus_beta2 * g * g;
    range.first[i] = m;
    range.second[i] = v;
    float denominator = std::sqrt(v) * c.inverse_correction2 + c.epsilon;
    range.weights[i] = range.weights[i] * c.keep - c.step_size * m / denominator;
  }
}

}  // namespace

void AdamW::Update(Model& model, double learning_rate, double gradient_factor) {
  ++updates_;
  double k = static_cast<double>(updates_);
  Coefficients c = {
      .gradient_factor = static_cast<float>(gradient_factor),
      .beta1 = static_cast<float>(config_.beta1),
      .beta2 = static_cast<float>(config_.beta2),
      .one_minus_beta1 = static_cast<float>(1 - config_.beta1),
      .one_minus_beta2 = static_cast<float>(1 - config_.beta2),
      .step_size = static_cast<float>(learning_rate / (1 - std::pow(config_.beta1, k))),
      .inverse_correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(config_.beta2, k))),
      .epsilon = static_cast<float>(config_.epsilon),
      .keep = 1,
  };
  for (const Parameter& parameter : model.parameters()) {
    c.keep = parameter.decay ? static_cast<float>(1 - learning_rate * config_.weight_decay) : 1.0f;
    UpdateRange(c, {.gradients = model.gradients() + parameter.offset,
                    .first = moments_.first + parameter.offset,
                    .second = moments_.second + parameter.offset,
                    .weights = model.master() + parameter.offset,
                    .count = parameter.count});
  }
}

}  // namespace llmctl::engine
