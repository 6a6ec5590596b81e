// The L2 norm of all gradients, by which they are clipped.
//
// Squares are added in fp64, in blocks of 4096 elements and in one fixed order: the norm is the same bits however
// many threads or ranks there are. A gradient that is not finite makes the norm not finite.
#pragma once

#include <cstdint>

namespace llmctl::engine {

double GradientNorm(const float* gradients, int64_t count);

// What gradients are to be multiplied by: 1, or less if `norm` is above `max_norm` (0: never clip).
double ClipFactor(double norm, double max_norm);

}  // namespace llmctl::engine
