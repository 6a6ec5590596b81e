// The kernels of the optimizer: long ranges of the flat vectors, bound by memory.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

template <typename L>
struct Flat {
  using S = typename L::Scalar;
  using V = typename L::Vector;

  // Lanes add in fp32, chunks in fp64: the rounding does not grow with the length.
  static double SumOfSquares(const S* x, int64_t count) {
    constexpr int64_t kChunk = 4096;
    double total = 0;
    for (int64_t begin = 0; begin < count; begin += kChunk) {
      int64_t size = count - begin < kChunk ? count - begin : kChunk;
      V sum = L::Set(0);
      ForLanes<L>(size, [&](int64_t i, auto lanes) {
        V v = L::Load(x + begin + i, lanes);
        sum = L::MulAdd(v, v, sum);
      });
      total += static_cast<double>(L::Sum(sum));
    }
    return total;
  }

  static void AdamW(const AdamWStep<S>& k) {
    double correction1 = 1 - std::pow(k.beta1, static_cast<double>(k.step));
    double correction2 = 1 - std::pow(k.beta2, static_cast<double>(k.step));
    V clip = L::Set(static_cast<S>(k.gradient_scale));
    V beta1 = L::Set(static_cast<S>(k.beta1)), rest1 = L::Set(static_cast<S>(1 - k.beta1));
    V beta2 = L::Set(static_cast<S>(k.beta2)), rest2 = L::Set(static_cast<S>(1 - k.beta2));
    V rate = L::Set(static_cast<S>(-k.learning_rate / correction1));
    V root_scale = L::Set(static_cast<S>(1 / std::sqrt(correction2)));
    V epsilon = L::Set(static_cast<S>(k.epsilon));
    V shrink = L::Set(static_cast<S>(1 - k.learning_rate * k.weight_decay));
    ForLanes<L>(k.count, [&](int64_t i, auto lanes) {
      V g = L::Mul(L::Load(k.gradient + i, lanes), clip);
      V m = L::MulAdd(beta1, L::Load(k.first_moment + i, lanes), L::Mul(rest1, g));
      V v = L::MulAdd(beta2, L::Load(k.second_moment + i, lanes), L::Mul(rest2, L::Mul(g, g)));
      L::Store(k.first_moment + i, m, lanes);
      L::Store(k.second_moment + i, v, lanes);
      V divisor = L::MulAdd(L::Sqrt(v), root_scale, epsilon);
      V w = L::MulAdd(rate, L::Div(m, divisor), L::Mul(L::Load(k.master + i, lanes), shrink));
      L::Store(k.master + i, w, lanes);
      if (k.weights != nullptr) StoreRounded(k.weights + i, w, lanes);
    });
  }

 private:
  template <typename LanesKind>
  static void StoreRounded(Bf16* p, V v, LanesKind lanes) {
    if constexpr (requires { L::Store(p, v, lanes); }) L::Store(p, v, lanes);
  }
};

}  // namespace llmctl::engine::kernels
