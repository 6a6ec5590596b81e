// The row-wise kernels of the table, written once over Lanes `L` and operand type `A`.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

template <typename L, typename A>
struct Rowwise {
  using R = Residual<A>;
  using S = typename L::Scalar;
  using V = typename L::Vector;

  static void NormForwardKernel(const NormForward<A>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      const R* x = k.x + row * k.columns;
      R* sum = k.sum + row * k.columns;
      A* out = k.out + row * k.columns;
      V squares = L::Set(0);
      if (k.branch != nullptr) {
        const A* branch = k.branch + row * k.columns;
        ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
          V v = L::Add(L::Load(x + i, lanes), L::Load(branch + i, lanes));
          L::Store(sum + i, v, lanes);
          squares = L::MulAdd(v, v, squares);
        });
      } else {
        ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
          V v = L::Load(x + i, lanes);
          L::Store(sum + i, v, lanes);
          squares = L::MulAdd(v, v, squares);
        });
      }
      S scale = 1 / std::sqrt(L::Sum(squares) / static_cast<S>(k.columns) + static_cast<S>(k.epsilon));
      k.scale[row] = scale;
      ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
        V normed = L::Mul(L::Load(sum + i, lanes), L::Set(scale));
        L::Store(out + i, L::Mul(normed, L::Load(k.weight + i, lanes)), lanes);
      });
    }
  }

  // With n = sum * scale and g = d_out * weight: d_sum = scale * (g - n * mean(g * n)).
  static void NormBackwardKernel(const NormBackward<A>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      const A* d_out = k.d_out + row * k.columns;
      const R* sum = k.sum + row * k.columns;
      V scale = L::Set(k.scale[row]);
      V dot = L::Set(0);
      ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
        V d = L::Load(d_out + i, lanes);
        V normed = L::Mul(L::Load(sum + i, lanes), scale);
        L::Store(k.d_weight + i, L::MulAdd(d, normed, L::Load(k.d_weight + i, lanes)), lanes);
        dot = L::MulAdd(L::Mul(d, L::Load(k.weight + i, lanes)), normed, dot);
      });
      NormBackwardRow(k, row, L::Set(L::Sum(dot) / static_cast<S>(k.columns)));
    }
  }

  static void RopeKernel(const Rope<A>& k) {
    int64_t half = k.head_size / 2;
    V sign = L::Set(k.inverse ? S(-1) : S(1));
    for (int64_t row = 0; row < k.rows; ++row) {
      const R* cosine = k.cosine + row % k.sequence_length * half;
      const R* sine = k.sine + row % k.sequence_length * half;
      for (int64_t head = 0; head < k.heads; ++head) {
        A* x = k.x + row * k.pitch + head * k.head_size;
        ForLanes<L>(half, [&](int64_t i, auto lanes) {
          V a = L::Load(x + i, lanes), b = L::Load(x + half + i, lanes);
          V c = L::Load(cosine + i, lanes), s = L::Mul(sign, L::Load(sine + i, lanes));
          L::Store(x + i, L::Sub(L::Mul(a, c), L::Mul(b, s)), lanes);
          L::Store(x + half + i, L::MulAdd(a, s, L::Mul(b, c)), lanes);
        });
      }
    }
  }

  static V Sigmoid(V x) { return L::Div(L::Set(1), L::Add(L::Set(1), L::Exp(L::Sub(L::Set(0), x)))); }

  static void SwiGluForwardKernel(const SwiGluForward<A>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      const A* gate = k.gate_up + row * 2 * k.columns;
      const A* up = gate + k.columns;
      A* out = k.out + row * k.columns;
      ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
        V g = L::Load(gate + i, lanes);
        L::Store(out + i, L::Mul(L::Mul(g, Sigmoid(g)), L::Load(up + i, lanes)), lanes);
      });
    }
  }

  // d silu(g)/dg = s + g * s * (1 - s) with s = sigmoid(g).
  static void SwiGluBackwardKernel(const SwiGluBackward<A>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      const A* gate = k.gate_up + row * 2 * k.columns;
      const A* d_out = k.d_out + row * k.columns;
      A* d_gate = k.d_gate_up + row * 2 * k.columns;
      ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
        V g = L::Load(gate + i, lanes), up = L::Load(gate + k.columns + i, lanes), d = L::Load(d_out + i, lanes);
        V s = Sigmoid(g);
        V silu = L::Mul(g, s);
        L::Store(d_gate + k.columns + i, L::Mul(d, silu), lanes);
        V slope = L::MulAdd(silu, L::Sub(L::Set(1), s), s);
        L::Store(d_gate + i, L::Mul(L::Mul(d, up), slope), lanes);
      });
    }
  }

  static void EmbeddingForwardKernel(const EmbeddingForward<R>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      const R* from = k.table + static_cast<int64_t>(k.tokens[row]) * k.columns;
      R* to = k.out + row * k.columns;
      ForLanes<L>(k.columns, [&](int64_t i, auto lanes) { L::Store(to + i, L::Load(from + i, lanes), lanes); });
    }
  }

  static void EmbeddingBackwardKernel(const EmbeddingBackward<R>& k) {
    for (int64_t row = 0; row < k.rows; ++row) {
      AddTo(k.d_out + row * k.columns, k.columns, k.d_table + static_cast<int64_t>(k.tokens[row]) * k.columns);
    }
  }

  static CrossEntropySum CrossEntropyKernel(const CrossEntropy<A>& k) {
    CrossEntropySum result{0, 0};
    for (int64_t row = 0; row < k.rows; ++row) {
      A* logits = k.logits + row * k.columns;
      int32_t target = k.targets[row];
      if (target >= 0) {
        result.loss += CrossEntropyRow(logits, k.columns, target, k.gradient_scale);
        ++result.tokens;
      } else if (k.gradient_scale != 0) {
        ForLanes<L>(k.columns, [&](int64_t i, auto lanes) { L::Store(logits + i, L::Set(0), lanes); });
      }
    }
    return result;
  }

  static void CastKernel(const R* x, int64_t count, A* out) {
    ForLanes<L>(count, [&](int64_t i, auto lanes) { L::Store(out + i, L::Load(x + i, lanes), lanes); });
  }

  static void WidenKernel(const A* x, int64_t count, R* out) {
    ForLanes<L>(count, [&](int64_t i, auto lanes) { L::Store(out + i, L::Load(x + i, lanes), lanes); });
  }

  static void AccumulateKernel(const A* x, int64_t count, R* sum) { AddTo(x, count, sum); }

 private:
  template <typename T>
  static void AddTo(const T* x, int64_t count, R* sum) {
    ForLanes<L>(count, [&](int64_t i, auto lanes) {
      L::Store(sum + i, L::Add(L::Load(sum + i, lanes), L::Load(x + i, lanes)), lanes);
    });
  }

  static void NormBackwardRow(const NormBackward<A>& k, int64_t row, V mean) {
    const A* d_out = k.d_out + row * k.columns;
    const R* sum = k.sum + row * k.columns;
    R* d_sum = k.d_sum + row * k.columns;
    V scale = L::Set(k.scale[row]);
    ForLanes<L>(k.columns, [&](int64_t i, auto lanes) {
      V g = L::Mul(L::Load(d_out + i, lanes), L::Load(k.weight + i, lanes));
      V normed = L::Mul(L::Load(sum + i, lanes), scale);
      V d = L::Mul(scale, L::Sub(g, L::Mul(normed, mean)));
      if (k.add) d = L::Add(d, L::Load(d_sum + i, lanes));
      L::Store(d_sum + i, d, lanes);
      if (k.d_sum_operand != nullptr) L::Store(k.d_sum_operand + row * k.columns + i, d, lanes);
    });
  }

  // The loss of one row; its logits become gradient_scale * (softmax - onehot(target)).
  static double CrossEntropyRow(A* logits, int64_t columns, int32_t target, double gradient_scale) {
    V top = L::Set(S(-1e30));
    ForLanes<L>(columns - columns % L::kWidth, [&](int64_t i, auto lanes) {
      top = L::Max(top, L::Load(logits + i, lanes));
    });
    S largest = L::Largest(top);
    // A partial load fills with zero, which could be larger than every logit.
    for (int64_t i = columns - columns % L::kWidth; i < columns; ++i) {
      S x = ReadOne(logits + i);
      if (x > largest) largest = x;
    }
    S sum = SumOfExp(logits, columns, largest);
    S at_target = ReadOne(logits + target);
    double loss = static_cast<double>(largest) + std::log(static_cast<double>(sum)) - static_cast<double>(at_target);
    if (gradient_scale != 0) {
      V scale = L::Set(static_cast<S>(gradient_scale / static_cast<double>(sum)));
      ForLanes<L>(columns, [&](int64_t i, auto lanes) {
        V x = L::Sub(L::Load(logits + i, lanes), L::Set(largest));
        L::Store(logits + i, L::Mul(L::Exp(x), scale), lanes);
      });
      // From the loss, not from the rounded probability: exp(-loss) - 1 keeps its bits where it is near 0.
      L::Store(logits + target, L::Set(static_cast<S>(std::expm1(-loss) * gradient_scale)), Part{1});
    }
    return loss;
  }

  static S ReadOne(const A* p) { return FirstOf(L::Load(p, Part{1})); }

  // Two sums, so that one addition need not wait for the other.
  static S SumOfExp(const A* logits, int64_t columns, S largest) {
    V even = L::Set(0), odd = L::Set(0), top = L::Set(largest);
    int64_t i = 0;
    for (; i + 2 * L::kWidth <= columns; i += 2 * L::kWidth) {
      even = L::Add(even, L::Exp(L::Sub(L::Load(logits + i, Full{}), top)));
      odd = L::Add(odd, L::Exp(L::Sub(L::Load(logits + i + L::kWidth, Full{}), top)));
    }
    S sum = L::Sum(L::Add(even, odd));
    for (; i < columns; ++i) sum += FirstOf(L::Exp(L::Sub(L::Load(logits + i, Part{1}), top)));
    return sum;
  }

  static S FirstOf(V v) {
    S lanes[L::kWidth];
    L::Store(lanes, v, Full{});
    return lanes[0];
  }
};

}  // namespace llmctl::engine::kernels
