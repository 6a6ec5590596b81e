// The number types of the kernels.
//
// An *operand* is what layers pass to each other and GEMMs read: float, Bf16, or double in tests. The *residual*
// type carries what must not lose bits: the residual stream, statistics, master weights and their gradients.
#pragma once

#include <cstdint>

namespace llmctl::engine::kernels {

// The upper half of a float. Storage only: kernels compute in fp32.
struct Bf16 {
  uint16_t bits;
};

template <typename Operand>
struct ResidualOf {
  using Type = float;
};
template <>
struct ResidualOf<double> {
  using Type = double;
};
template <typename Operand>
using Residual = typename ResidualOf<Operand>::Type;

}  // namespace llmctl::engine::kernels
