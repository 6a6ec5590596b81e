#include "worker/engine/layers/linear.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace llmctl::engine {
namespace {

// Of the bf16 weight gradient: fits a second-level cache beside what it is added to.
constexpr int64_t kChunkElements = 256 * 1024;
// Fewer rows would starve the matrix product.
constexpr int64_t kChunkRowsMin = 256;

}  // namespace

template <typename A>
Linear<A>::Linear(const kernels::KernelTable<A>& kernels, Weights weights, const Activations& activations)
    : kernels_(&kernels), weights_(std::move(weights)), activations_(activations),
      weight_(weights_.weight, weights_.out, weights_.in), weight_transposed_(weight_.Transposed()) {}

template <typename A>
void Linear<A>::Bind(int64_t rows) {
  x_ = kernels::Matrix(activations_.x, rows, weights_.in);
  y_ = kernels::Matrix(activations_.y, rows, weights_.out);
  if (weights_.gradient == nullptr) return;
  d_x_ = kernels::Matrix(activations_.d_x, rows, weights_.in);
  d_y_ = kernels::Matrix(activations_.d_y, rows, weights_.out);
  BindGradient(d_y_);
}

template <typename A>
void Linear<A>::BindGradient(const kernels::Matrix& d_y) {
  chunks_.clear();
  if constexpr (std::is_same_v<A, R>) {
    chunks_.push_back({d_y.Transposed(), kernels::Matrix(weights_.gradient, weights_.out, weights_.in), 0, 0});
  } else {
    int64_t rows = std::max(kChunkRowsMin, kChunkElements / weights_.in);
    for (int64_t begin = 0; begin < weights_.out; begin += rows) {
      int64_t count = std::min(rows, weights_.out - begin);
      chunks_.push_back({d_y.Columns(begin, count).Transposed(),
                         kernels::Matrix(weights_.product, count, weights_.in), begin * weights_.in,
                         count * weights_.in});
    }
  }
}

template <typename A>
void Linear<A>::Forward() const {
  kernels::Multiply(x_, weight_transposed_, y_, /*add=*/false);
}

template <typename A>
void Linear<A>::BackwardInput() const {
  kernels::Multiply(d_y_, weight_, d_x_, /*add=*/false);
}

template <typename A>
void Linear<A>::BackwardWeight(GradSink* sink) const {
  for (const Chunk& chunk : chunks_) {
    constexpr bool kInPlace = std::is_same_v<A, R>;
    kernels::Multiply(chunk.d_y_transposed, x_, chunk.product, /*add=*/kInPlace);
    if constexpr (!kInPlace) {
      kernels_->accumulate(weights_.product, chunk.count, weights_.gradient + chunk.begin);
    }
  }
  if (sink == nullptr) return;
  for (const Parameter* parameter : weights_.parameters) sink->GradientReady(*parameter);
}

template class Linear<float>;
template class Linear<kernels::Bf16>;
template class Linear<double>;

}  // namespace llmctl::engine
