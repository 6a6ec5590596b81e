// Linear: y = x * weight^T, without bias.
//
// Weight [out, in] and its gradient lie in the flat vectors and may cover several logical parameters that are
// adjacent there (q, k, v). Buffers are fixed at construction; Bind makes the views for a number of rows.
// With bf16 operands the weight gradient of a micro-batch is a bf16 product that is added to the fp32 main
// gradient, chunk by chunk so that the bf16 chunk is still in cache when it is added.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/kernels/gemm.h"
#include "worker/engine/kernels/table.h"
#include "worker/engine/layers/grad_sink.h"

namespace llmctl::engine {

template <typename A>
class Linear {
 public:
  using R = kernels::Residual<A>;

  struct Weights {
    int64_t out = 0;
    int64_t in = 0;
    A* weight = nullptr;
    R* gradient = nullptr;  // null without training
    A* product = nullptr;   // [out * in] scratch of the weight gradient, only where A is not R
    // Told to the sink when the gradient is complete; empty when somebody else adds to it later.
    std::vector<const Parameter*> parameters;
  };
  struct Activations {
    A* x = nullptr;    // [rows, in]
    A* y = nullptr;    // [rows, out]
    A* d_x = nullptr;  // null without training, as d_y
    A* d_y = nullptr;
  };

  Linear(const kernels::KernelTable<A>& kernels, Weights weights, const Activations& activations);

  void Bind(int64_t rows);

  void Forward() const;
  void BackwardInput() const;
  // Adds to the gradient. `sink` may be null.
  void BackwardWeight(GradSink* sink) const;

 private:
  // Some rows of the weight gradient.
  struct Chunk {
    kernels::Matrix d_y_transposed;
    kernels::Matrix product;
    int64_t begin;
    int64_t count;  // elements
  };

  void BindGradient(const kernels::Matrix& d_y);

  const kernels::KernelTable<A>* kernels_;
  Weights weights_;
  Activations activations_;
  kernels::Matrix weight_, weight_transposed_;
  kernels::Matrix x_, y_, d_x_, d_y_;
  std::vector<Chunk> chunks_;
};

extern template class Linear<float>;
extern template class Linear<kernels::Bf16>;
extern template class Linear<double>;

}  // namespace llmctl::engine
