#include "worker/engine/layers/linear.h"

#include <type_traits>
#include <utility>

namespace llmctl::engine {
namespace {

// Where the product of a weight gradient is written: the gradient itself where the types allow it.
template <typename Weights>
auto* ProductOf(const Weights& weights) {
  if constexpr (std::is_same_v<decltype(weights.product), decltype(weights.gradient)>) {
    return weights.gradient;
  } else {
    return weights.product;
  }
}

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
  product_ = kernels::Matrix(ProductOf(weights_), weights_.out, weights_.in);
  d_x_ = kernels::Matrix(activations_.d_x, rows, weights_.in);
  d_y_ = kernels::Matrix(activations_.d_y, rows, weights_.out);
  d_y_transposed_ = d_y_.Transposed();
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
void Linear<A>::BackwardWeight(Accumulation accumulation, GradSink* sink) const {
  bool add = accumulation == Accumulation::kAdd;
  if constexpr (std::is_same_v<A, R>) {
    kernels::Multiply(d_y_transposed_, x_, product_, add);
  } else {
    kernels::Multiply(d_y_transposed_, x_, product_, /*add=*/false);
    auto* into_gradient = add ? kernels_->accumulate : kernels_->widen;
    into_gradient(weights_.product, weights_.out * weights_.in, weights_.gradient);
  }
  if (sink == nullptr) return;
  for (const Parameter* parameter : weights_.parameters) sink->GradientReady(*parameter);
}

template class Linear<float>;
template class Linear<kernels::Bf16>;
template class Linear<double>;

}  // namespace llmctl::engine
