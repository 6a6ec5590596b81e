#include "worker/engine/kernels/gemm.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include "worker/engine/kernels/isa.h"

namespace at::native {

// Exported by libtorch_cpu.so, but in no header that the wheel ships. out = alpha * a * b + beta * out.
TORCH_API void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& out, float beta, float alpha);

}  // namespace at::native

namespace llmctl::engine::kernels {
namespace {

at::Tensor View(void* data, int64_t rows, int64_t columns, at::ScalarType type) {
  return at::from_blob(data, {rows, columns}, at::TensorOptions().dtype(type));
}

// mkldnn_matmul refuses bf16 on a CPU without instructions for it.
bool TakesOneDnn(at::ScalarType type) {
  if (type == at::kFloat) return true;
  if (type != at::kBFloat16) return false;
  static const bool has_bf16 = ResolveIsa(Isa::kAvx512).ok();
  return has_bf16;
}

}  // namespace

Matrix::Matrix(float* data, int64_t rows, int64_t columns) : tensor_(View(data, rows, columns, at::kFloat)) {}
Matrix::Matrix(Bf16* data, int64_t rows, int64_t columns) : tensor_(View(data, rows, columns, at::kBFloat16)) {}
Matrix::Matrix(double* data, int64_t rows, int64_t columns) : tensor_(View(data, rows, columns, at::kDouble)) {}

void Multiply(const Matrix& a, const Matrix& b, const Matrix& out, bool add) {
  if (TakesOneDnn(out.tensor().scalar_type())) {
    at::native::mkldnn_matmul(a.tensor(), b.tensor(), out.tensor(), add ? 1.f : 0.f, 1.f);
    return;
  }
  at::Tensor result = out.tensor();
  if (add) {
    at::addmm_out(result, result, a.tensor(), b.tensor());
  } else {
    at::mm_out(result, a.tensor(), b.tensor());
  }
}

}  // namespace llmctl::engine::kernels
