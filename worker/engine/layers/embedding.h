// Embedding: the rows of the master table that the tokens name begin the residual stream.
#pragma once

#include <cstdint>

#include "worker/engine/kernels/table.h"
#include "worker/engine/layers/grad_sink.h"

namespace llmctl::engine {

template <typename A>
class Embedding {
 public:
  using R = kernels::Residual<A>;

  struct Weights {
    int64_t columns = 0;
    const R* table = nullptr;
    R* gradient = nullptr;
    const Parameter* parameter = nullptr;
  };
  struct Activations {
    R* out = nullptr;
    const R* d_out = nullptr;
  };

  Embedding(const kernels::KernelTable<A>& kernels, const Weights& weights, const Activations& activations)
      : kernels_(&kernels), weights_(weights), activations_(activations) {}

  // The tokens must stay until the backward pass is over.
  void Bind(const int32_t* tokens, int64_t rows) {
    tokens_ = tokens;
    rows_ = rows;
  }

  void Forward() const {
    kernels_->embedding_forward({.rows = rows_, .columns = weights_.columns, .tokens = tokens_,
                                 .table = weights_.table, .out = activations_.out});
  }

  void BackwardWeight(GradSink* sink) const {
    kernels_->embedding_backward({.rows = rows_, .columns = weights_.columns, .tokens = tokens_,
                                  .d_out = activations_.d_out, .d_table = weights_.gradient});
    if (sink != nullptr) sink->GradientReady(*weights_.parameter);
  }

 private:
  const kernels::KernelTable<A>* kernels_;
  Weights weights_;
  Activations activations_;
  const int32_t* tokens_ = nullptr;
  int64_t rows_ = 0;
};

}  // namespace llmctl::engine
