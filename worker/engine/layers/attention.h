// Attention: rotary positions, then causal attention with grouped key-value heads.
//
// The rotation (Hugging Face's: halves of a head, not neighbours) is applied in place, so qkv holds rotated
// queries and keys afterwards; backward rotates their gradients back.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/engine/kernels/table.h"

namespace llmctl::engine {

// cosine and sine, [sequence_length, head_size / 2] each.
template <typename R>
struct RopeTable {
  R* cosine = nullptr;
  R* sine = nullptr;

  void Fill(int64_t sequence_length, int64_t head_size, double theta) const {
    int64_t half = head_size / 2;
    for (int64_t position = 0; position < sequence_length; ++position) {
      for (int64_t i = 0; i < half; ++i) {
        double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_size);
        double angle = static_cast<double>(position) * std::pow(theta, exponent);
        cosine[position * half + i] = static_cast<R>(std::cos(angle));
        sine[position * half + i] = static_cast<R>(std::sin(angle));
      }
    }
  }
};

template <typename A>
class Attention {
 public:
  using R = kernels::Residual<A>;

  struct Sizes {
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t head_size = 0;
  };
  struct Activations {
    A* qkv = nullptr;
    R* log_sum = nullptr;
    A* out = nullptr;
    A* d_qkv = nullptr;
    const A* d_out = nullptr;
    R* workspace = nullptr;  // [layout::AttentionWorkspaceElements]
  };

  Attention(const kernels::KernelTable<A>& kernels, const Sizes& sizes, const RopeTable<R>& rope,
            const Activations& activations)
      : kernels_(&kernels), rope_(rope), activations_(activations) {
    shape_.heads = sizes.heads;
    shape_.kv_heads = sizes.kv_heads;
    shape_.head_size = sizes.head_size;
  }

  void Bind(int64_t samples, int64_t sequence_length) {
    shape_.samples = samples;
    shape_.sequence_length = sequence_length;
  }

  void Forward() const {
    Rotate(activations_.qkv, /*inverse=*/false);
    kernels_->attention_forward({.shape = shape_, .qkv = activations_.qkv, .out = activations_.out,
                                 .log_sum = activations_.log_sum, .workspace = activations_.workspace});
  }

  void BackwardInput() const {
    kernels_->attention_backward({.shape = shape_, .qkv = activations_.qkv, .out = activations_.out,
                                  .d_out = activations_.d_out, .log_sum = activations_.log_sum,
                                  .d_qkv = activations_.d_qkv, .workspace = activations_.workspace});
    Rotate(activations_.d_qkv, /*inverse=*/true);
  }

 private:
  // Queries and keys are adjacent heads of a row.
  void Rotate(A* qkv, bool inverse) const {
    kernels_->rope({.rows = shape_.samples * shape_.sequence_length, .sequence_length = shape_.sequence_length,
                    .heads = shape_.heads + shape_.kv_heads, .head_size = shape_.head_size,
                    .pitch = shape_.qkv_pitch(), .cosine = rope_.cosine, .sine = rope_.sine, .inverse = inverse,
                    .x = qkv});
  }

  const kernels::KernelTable<A>* kernels_;
  RopeTable<R> rope_;
  Activations activations_;
  kernels::AttentionShape shape_{};
};

}  // namespace llmctl::engine
