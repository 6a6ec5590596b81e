// How the row-wise kernels see a vector register.
//
// A Lanes class (lanes_avx512.h, lanes_avx2.h, lanes_plain.h) has
//   Scalar, Vector, kWidth;
//   Load(p, lanes), Store(p, v, lanes)   of Scalar and of Bf16 memory; `lanes` is Full or Part
//   Set, Add, Sub, Mul, Div, Max, Sqrt, Exp, MulAdd(a, b, c) = a * b + c, Sum, Largest
// Kernels are templates over it. Each Lanes class is used in one translation unit, compiled for its instruction
// set, so no code for a better CPU can be shared with the rest of the program by accident; for the same reason
// nothing here may call inline functions of the standard library that could be emitted out of line.
#pragma once

#include <cstdint>

namespace llmctl::engine::kernels {

// All lanes.
struct Full {};
// The first `count` lanes: others load as zero and are not stored.
struct Part {
  int count;
};

// Calls body(i, lanes) for i = 0, kWidth, 2 * kWidth, ... until `count` elements are covered.
template <typename L, typename Body>
inline __attribute__((always_inline)) void ForLanes(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + L::kWidth <= count; i += L::kWidth) body(i, Full{});
  if (i < count) body(i, Part{static_cast<int>(count - i)});
}

}  // namespace llmctl::engine::kernels
