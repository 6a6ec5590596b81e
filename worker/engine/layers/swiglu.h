// SwiGlu: out = silu(gate) * up, where a row of gate_up is gate, then up.
#pragma once

#include <cstdint>

#include "worker/engine/kernels/table.h"

namespace llmctl::engine {

template <typename A>
class SwiGlu {
 public:
  struct Activations {
    const A* gate_up = nullptr;
    A* out = nullptr;
    A* d_gate_up = nullptr;
    const A* d_out = nullptr;
  };

  SwiGlu(const kernels::KernelTable<A>& kernels, int64_t columns, const Activations& activations)
      : kernels_(&kernels), columns_(columns), activations_(activations) {}

  void Bind(int64_t rows) { rows_ = rows; }

  void Forward() const {
    kernels_->swiglu_forward(
        {.rows = rows_, .columns = columns_, .gate_up = activations_.gate_up, .out = activations_.out});
  }

  void BackwardInput() const {
    kernels_->swiglu_backward({.rows = rows_, .columns = columns_, .gate_up = activations_.gate_up,
                               .d_out = activations_.d_out, .d_gate_up = activations_.d_gate_up});
  }

 private:
  const kernels::KernelTable<A>* kernels_;
  int64_t columns_;
  Activations activations_;
  int64_t rows_ = 0;
};

}  // namespace llmctl::engine
