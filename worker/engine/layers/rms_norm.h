// RmsNorm: adds a branch to the residual stream and normalises the sum.
//
// sum = x + branch; out = sum / rms(sum) * weight. Backward adds the gradient that comes through the norm to
// the gradient of the stream, which so runs from the last layer to the first in one buffer.
#pragma once

#include <cstdint>

#include "worker/engine/kernels/table.h"
#include "worker/engine/layers/grad_sink.h"

namespace llmctl::engine {

template <typename A>
class RmsNorm {
 public:
  using R = kernels::Residual<A>;

  struct Weights {
    int64_t columns = 0;
    double epsilon = 0;
    const R* weight = nullptr;
    R* gradient = nullptr;
    const Parameter* parameter = nullptr;
  };
  struct Activations {
    const R* x = nullptr;       // the stream before the branch
    const A* branch = nullptr;  // null: sum = x
    R* sum = nullptr;
    R* scale = nullptr;  // [rows]
    A* out = nullptr;
    const A* d_out = nullptr;
    R* d_stream = nullptr;
    A* d_stream_operand = nullptr;  // the same rounded, for the GEMMs; null where A is R
  };

  RmsNorm(const kernels::KernelTable<A>& kernels, const Weights& weights, const Activations& activations)
      : kernels_(&kernels), weights_(weights), activations_(activations) {}

  void Bind(int64_t rows) { rows_ = rows; }

  void Forward() const {
    kernels_->norm_forward({.rows = rows_, .columns = weights_.columns, .epsilon = weights_.epsilon,
                            .x = activations_.x, .branch = activations_.branch, .weight = weights_.weight,
                            .sum = activations_.sum, .out = activations_.out, .scale = activations_.scale});
  }

  // Input and weight in one pass over the rows: both are bound by memory. Of the norms of a model the last one
  // sets the gradient of the stream, the others add to it. The gradient of the weight is added to.
  void Backward(Accumulation stream, GradSink* sink) const {
    kernels_->norm_backward({.rows = rows_, .columns = weights_.columns, .d_out = activations_.d_out,
                             .sum = activations_.sum, .scale = activations_.scale, .weight = weights_.weight,
                             .add = stream == Accumulation::kAdd, .d_sum = activations_.d_stream,
                             .d_sum_operand = activations_.d_stream_operand, .d_weight = weights_.gradient});
    if (sink != nullptr) sink->GradientReady(*weights_.parameter);
  }

 private:
  const kernels::KernelTable<A>* kernels_;
  Weights weights_;
  Activations activations_;
  int64_t rows_ = 0;
};

}  // namespace llmctl::engine
