#include "worker/engine/kernels/block_product.h"

#include <ATen/native/CPUBlas.h>

namespace llmctl::engine::kernels {

namespace cpublas = at::native::cpublas;

void MultiplyBlock(const BlockShape& s, const float* a, const float* b, float* c) {
  cpublas::brgemm(s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.add, a, b, c, /*is_vnni=*/false);
}

void MultiplyBlock(const BlockShape& s, const Bf16* a, const Bf16* b, float* c) {
  cpublas::brgemm(s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.add, reinterpret_cast<const at::BFloat16*>(a),
                  reinterpret_cast<const at::BFloat16*>(b), c, /*is_vnni=*/true);
}

void ReleaseBlocks() { cpublas::brgemm_release(/*is_vnni=*/true); }

}  // namespace llmctl::engine::kernels
