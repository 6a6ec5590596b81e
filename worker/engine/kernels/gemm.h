// The one door to matrix products.
//
// fp32 and bf16 go to oneDNN through ATen's mkldnn_matmul, which writes into memory of ours (the public operators
// allocate their result, which costs more than a third of a step) and, in fp32, does not take MKL's slow path on
// AMD. fp64 and CPUs without bf16 instructions take ATen's ordinary product.
//
// A Matrix is a view of memory that outlives it. Views are made once, when a layer is bound to its buffers.
// Requires c10::InferenceMode in the calling thread.
#pragma once

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

class Matrix {
 public:
  Matrix() = default;
  // [rows, columns], row-major, without gaps.
  Matrix(float* data, int64_t rows, int64_t columns);
  Matrix(Bf16* data, int64_t rows, int64_t columns);
  Matrix(double* data, int64_t rows, int64_t columns);

  Matrix Transposed() const { return Matrix(tensor_.t()); }

  const at::Tensor& tensor() const { return tensor_; }

 private:
  explicit Matrix(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  at::Tensor tensor_;
};

// out = a * b, or out += a * b. All of one type.
void Multiply(const Matrix& a, const Matrix& b, const Matrix& out, bool add);

}  // namespace llmctl::engine::kernels
