// Builds a column of the table from the row-wise kernels of Lanes `L` and an attention class.
#pragma once

#include "worker/engine/kernels/flat.h"
#include "worker/engine/kernels/rowwise.h"
#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

template <typename L, typename A, typename Attention>
constexpr KernelTable<A> MakeColumn() {
  using Rows = Rowwise<L, A>;
  return {
      .norm_forward = Rows::NormForwardKernel,
      .norm_backward = Rows::NormBackwardKernel,
      .rope = Rows::RopeKernel,
      .swiglu_forward = Rows::SwiGluForwardKernel,
      .swiglu_backward = Rows::SwiGluBackwardKernel,
      .attention_forward = Attention::Forward,
      .attention_backward = Attention::Backward,
      .embedding_forward = Rows::EmbeddingForwardKernel,
      .embedding_backward = Rows::EmbeddingBackwardKernel,
      .cross_entropy = Rows::CrossEntropyKernel,
      .cast = Rows::CastKernel,
      .widen = Rows::WidenKernel,
      .accumulate = Rows::AccumulateKernel,
      .optimizer = {.sum_of_squares = Flat<L>::SumOfSquares, .adamw = Flat<L>::AdamW},
  };
}

}  // namespace llmctl::engine::kernels
