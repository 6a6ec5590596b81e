// Linear: y = x * weight^T, without bias.
//
// Weight [out, in] and its gradient lie in the flat vectors and may cover several logical parameters that are
// adjacent there (q, k, v). Buffers are fixed at construction; Bind makes the views for a number of rows.
// With bf16 operands the weight gradient of a micro-batch is a bf16 product that is then added to the fp32 main
// gradient. It is one product: a view of some columns of d_y would be copied by the GEMM, which costs more than
// keeping a part in cache saves.
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
  // `sink` may be null.
  void BackwardWeight(Accumulation accumulation, GradSink* sink) const;

 private:
  const kernels::KernelTable<A>* kernels_;
  Weights weights_;
  Activations activations_;
  kernels::Matrix weight_, weight_transposed_;
  kernels::Matrix x_, y_, d_x_, d_y_, d_y_transposed_, product_;
};

extern template class Linear<float>;
extern template class Linear<kernels::Bf16>;
extern template class Linear<double>;

}  // namespace llmctl::engine
