// Products of small blocks in cache, C (+)= A * B in fp32: what attention is made of.
//
// oneDNN's batch-reduce kernels behind ATen. For bf16, B is interleaved by pairs of rows, [k / 2][ldb][2], and k
// is even; where the CPU has no bf16 kernel only the fp32 form may be called. Leading dimensions in elements.
#pragma once

#include <cstdint>

#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

struct BlockShape {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t lda;
  int64_t ldb;
  int64_t ldc;
  bool add;  // C += rather than =
};

void MultiplyBlock(const BlockShape& shape, const float* a, const float* b, float* c);
void MultiplyBlock(const BlockShape& shape, const Bf16* a, const Bf16* b_interleaved, float* c);

// To be called when done: gives back hardware tiles where the CPU has them.
void ReleaseBlocks();

}  // namespace llmctl::engine::kernels
