// Causal attention in blocks of 64 rows, on MultiplyBlock.
//
// Forward, per block of queries: scores against all earlier keys, softmax, times the values. A row's scores fit
// the cache, so there is no running rescale. Backward, per block of keys: probabilities again from the stored
// log-sums, then the products for dV, dK and, transposed, dQ. Query heads of a group share their packed keys
// and values and add to the same dK and dV. Rows are padded to 16 with zeros; padding never reaches a result.
//
// `P` is what MultiplyBlock takes: the operand type itself, or float where the CPU has no bf16 block product.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "worker/engine/kernels/block_product.h"
#include "worker/engine/kernels/packing.h"
#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

inline constexpr int64_t kAttentionBlock = 64;
inline constexpr float kMaskedScore = -1e30f;
inline constexpr int64_t kHeadSizeMax = 256;

template <typename L, typename A, typename P>
class BlockedAttention {
 public:
  static void Forward(const AttentionForward<A>& k) {
    BlockedAttention run(k.shape, k.workspace);
    ForwardBuffers b = run.TakeForward();
    for (int64_t sample = 0; sample < k.shape.samples; ++sample) {
      for (int64_t kv = 0; kv < k.shape.kv_heads; ++kv) {
        Packed::Transposed(run.Key(k.qkv, sample, kv), run.padded_, b.keys);
        Packed::Straight(run.Value(k.qkv, sample, kv), run.padded_, b.values);
        for (int64_t head = kv * run.group_; head < (kv + 1) * run.group_; ++head) {
          run.ForwardHead(k, sample, head, b);
        }
      }
    }
    ReleaseBlocks();
  }

  static void Backward(const AttentionBackward<A>& k) {
    BlockedAttention run(k.shape, k.workspace);
    BackwardBuffers b = run.TakeBackward();
    for (int64_t sample = 0; sample < k.shape.samples; ++sample) {
      for (int64_t kv = 0; kv < k.shape.kv_heads; ++kv) {
        for (int64_t i = 0; i < run.group_; ++i) run.BackwardHead(k, sample, kv * run.group_ + i, b);
        run.Narrow(b.d_keys, run.Mutable(run.Key(k.d_qkv, sample, kv)));
        run.Narrow(b.d_values, run.Mutable(run.Value(k.d_qkv, sample, kv)));
      }
    }
    ReleaseBlocks();
  }

 private:
  using V = typename L::Vector;
  using Packed = Packing<L, A, P>;

  struct ForwardBuffers {
    P* keys;    // transposed
    P* values;
    P* query;   // scratch of a left operand
    P* weights;
    float* scores;
    float* out;
  };
  struct BackwardBuffers {
    P *queries_t, *d_out_t, *queries, *d_out;  // of the whole sequence
    P *key, *value, *key_t;                    // of a block of keys
    P *weights, *d_scores, *d_scores_packed;
    float *scores, *d_weights;
    float *d_queries_t, *d_keys, *d_values;
    float *log_sum, *delta;
  };

  BlockedAttention(const AttentionShape& shape, float* workspace)
      : shape_(shape), length_(shape.sequence_length), padded_((shape.sequence_length + 15) / 16 * 16),
        size_(shape.head_size), group_(shape.heads / shape.kv_heads),
        score_scale_(1 / std::sqrt(static_cast<float>(shape.head_size))), next_(workspace) {}

  template <typename T>
  T* Take(int64_t count) {
    T* taken = reinterpret_cast<T*>(next_);
    next_ += count;  // four bytes an element, which bf16 does not fill
    return taken;
  }

  ForwardBuffers TakeForward() {
    ForwardBuffers b;
    b.keys = Take<P>(padded_ * size_);
    b.values = Take<P>(padded_ * size_);
    b.query = Take<P>(kAttentionBlock * size_);
    b.weights = Take<P>(kAttentionBlock * padded_);
    b.scores = Take<float>(kAttentionBlock * padded_);
    b.out = Take<float>(kAttentionBlock * size_);
    return b;
  }

  BackwardBuffers TakeBackward() {
    BackwardBuffers b;
    for (P** whole : {&b.queries_t, &b.d_out_t, &b.queries, &b.d_out}) *whole = Take<P>(padded_ * size_);
    for (P** block : {&b.key, &b.value, &b.key_t}) *block = Take<P>(kAttentionBlock * size_);
    for (P** block : {&b.weights, &b.d_scores, &b.d_scores_packed}) *block = Take<P>(kAttentionBlock * padded_);
    for (float** block : {&b.scores, &b.d_weights}) *block = Take<float>(kAttentionBlock * padded_);
    for (float** sum : {&b.d_queries_t, &b.d_keys, &b.d_values}) *sum = Take<float>(padded_ * size_);
    for (float** row : {&b.log_sum, &b.delta}) *row = Take<float>(padded_);
    return b;
  }

  Strip<A> Column(const A* qkv, int64_t sample, int64_t column) const {
    return {qkv + sample * length_ * shape_.qkv_pitch() + column * size_, shape_.qkv_pitch(), length_, size_};
  }
  Strip<A> Query(const A* qkv, int64_t sample, int64_t head) const { return Column(qkv, sample, head); }
  Strip<A> Key(const A* qkv, int64_t sample, int64_t kv) const { return Column(qkv, sample, shape_.heads + kv); }
  Strip<A> Value(const A* qkv, int64_t sample, int64_t kv) const {
    return Column(qkv, sample, shape_.heads + shape_.kv_heads + kv);
  }
  Strip<A> Out(const A* out, int64_t sample, int64_t head) const {
    return {out + sample * length_ * shape_.out_pitch() + head * size_, shape_.out_pitch(), length_, size_};
  }
  static Strip<A> Rows(const Strip<A>& x, int64_t begin, int64_t rows) {
    return {x.data + begin * x.pitch, x.pitch, rows, x.columns};
  }
  // The strips of an argument that the caller gave as writable.
  static A* Mutable(const Strip<A>& x) { return const_cast<A*>(x.data); }

  void ForwardHead(const AttentionForward<A>& k, int64_t sample, int64_t head, const ForwardBuffers& b) {
    Strip<A> queries = Query(k.qkv, sample, head);
    Strip<A> out = Out(k.out, sample, head);
    float* log_sum = k.log_sum + (sample * shape_.heads + head) * length_;
    for (int64_t begin = 0; begin < length_; begin += kAttentionBlock) {
      int64_t rows = Least(kAttentionBlock, length_ - begin);
      int64_t keys = Least(begin + kAttentionBlock, padded_);
      int64_t pitch;
      const P* left = Packed::Left(Rows(queries, begin, rows), b.query, &pitch);
      MultiplyBlock({rows, keys, size_, pitch, padded_, keys, false}, left, b.keys, b.scores);
      float inverse[kAttentionBlock];
      for (int64_t r = 0; r < rows; ++r) {
        inverse[r] = Softmax(b.scores + r * keys, begin + r, keys, b.weights + r * keys, &log_sum[begin + r]);
      }
      MultiplyBlock({rows, size_, keys, keys, size_, size_, false}, b.weights, b.values, b.out);
      for (int64_t r = 0; r < rows; ++r) {
        A* to = Mutable(out) + (begin + r) * out.pitch;
        ForLanes<L>(size_, [&](int64_t i, auto lanes) {
          L::Store(to + i, L::Mul(L::Load(b.out + r * size_ + i, lanes), L::Set(inverse[r])), lanes);
        });
      }
    }
  }

  // weights = exp(scale * (score - largest)), 0 after position `last`; returns 1 / their sum.
  float Softmax(float* scores, int64_t last, int64_t keys, P* weights, float* log_sum) const {
    for (int64_t c = last + 1; c < keys; ++c) scores[c] = kMaskedScore;
    V top = L::Set(kMaskedScore);
    for (int64_t c = 0; c < keys; c += L::kWidth) top = L::Max(top, L::Load(scores + c, Full{}));
    float largest = L::Largest(top) * score_scale_;
    V scale = L::Set(score_scale_), shift = L::Set(-largest), sum = L::Set(0);
    for (int64_t c = 0; c < keys; c += L::kWidth) {
      V e = L::Exp(L::MulAdd(L::Load(scores + c, Full{}), scale, shift));
      sum = L::Add(sum, e);
      L::Store(weights + c, e, Full{});
    }
    float total = L::Sum(sum);
    *log_sum = largest + std::log(total);
    return 1 / total;
  }

  void BackwardHead(const AttentionBackward<A>& k, int64_t sample, int64_t head, const BackwardBuffers& b) {
    Strip<A> queries = Query(k.qkv, sample, head), d_out = Out(k.d_out, sample, head);
    Packed::Transposed(queries, padded_, b.queries_t);
    Packed::Transposed(d_out, padded_, b.d_out_t);
    Packed::Straight(queries, padded_, b.queries);
    Packed::Straight(d_out, padded_, b.d_out);
    LoadRowSums(k, sample, head, b);
    int64_t kv = head / group_;
    bool add = head % group_ != 0;
    for (int64_t begin = 0; begin < length_; begin += kAttentionBlock) {
      BackwardBlock(Key(k.qkv, sample, kv), Value(k.qkv, sample, kv), begin, add, b);
    }
    StoreTransposed(b.d_queries_t, Query(k.d_qkv, sample, head));
  }

  // delta = rowsum(out * d_out), the term that softmax's gradient subtracts.
  void LoadRowSums(const AttentionBackward<A>& k, int64_t sample, int64_t head, const BackwardBuffers& b) {
    Strip<A> out = Out(k.out, sample, head), d_out = Out(k.d_out, sample, head);
    const float* log_sum = k.log_sum + (sample * shape_.heads + head) * length_;
    for (int64_t row = 0; row < length_; ++row) {
      V dot = L::Set(0);
      ForLanes<L>(size_, [&](int64_t i, auto lanes) {
        dot = L::MulAdd(L::Load(out.data + row * out.pitch + i, lanes),
                        L::Load(d_out.data + row * out.pitch + i, lanes), dot);
      });
      b.delta[row] = L::Sum(dot);
      b.log_sum[row] = log_sum[row];
    }
    // Weights of padded queries become 0.
    for (int64_t row = length_; row < padded_; ++row) {
      b.delta[row] = 0;
      b.log_sum[row] = -kMaskedScore;
    }
  }

  void BackwardBlock(const Strip<A>& keys, const Strip<A>& values, int64_t begin, bool add,
                     const BackwardBuffers& b) {
    int64_t rows = Least(kAttentionBlock, length_ - begin);
    int64_t even_rows = (rows + kPair<P> - 1) / kPair<P> * kPair<P>;
    int64_t queries = padded_ - begin;  // earlier ones do not see these keys
    Strip<A> key = Rows(keys, begin, rows), value = Rows(values, begin, rows);
    int64_t pitch;
    const P* left = Packed::Left(key, b.key, &pitch);
    MultiplyBlock({rows, queries, size_, pitch, padded_, queries, false}, left,
                  b.queries_t + begin * kPair<P>, b.scores);
    left = Packed::Left(value, b.value, &pitch);
    MultiplyBlock({rows, queries, size_, pitch, padded_, queries, false}, left,
                  b.d_out_t + begin * kPair<P>, b.d_weights);
    for (int64_t r = 0; r < rows; ++r) ScoreGradients(r, begin, queries, b);
    MultiplyBlock({rows, size_, queries, queries, size_, size_, add}, b.weights, b.d_out + begin * size_,
                  b.d_values + begin * size_);
    MultiplyBlock({rows, size_, queries, queries, size_, size_, add}, b.d_scores, b.queries + begin * size_,
                  b.d_keys + begin * size_);
    const P* right = b.d_scores;
    if constexpr (kPair<P> == 2) {
      Packing<L, P, P>::Straight({b.d_scores, queries, rows, queries}, even_rows, b.d_scores_packed);
      right = b.d_scores_packed;
    }
    TransposeKeys(key, even_rows, b.key_t);
    MultiplyBlock({size_, queries, even_rows, kAttentionBlock, queries, padded_, begin > 0}, b.key_t, right,
                  b.d_queries_t + begin);
  }

  // Of key `begin + r` and the queries from `begin` on: weights, and gradients of the scores.
  void ScoreGradients(int64_t r, int64_t begin, int64_t queries, const BackwardBuffers& b) const {
    float* scores = b.scores + r * queries;
    const float* d_weights = b.d_weights + r * queries;
    for (int64_t c = 0; c < r; ++c) scores[c] = kMaskedScore;
    V scale = L::Set(score_scale_);
    for (int64_t c = 0; c < queries; c += L::kWidth) {
      V shift = L::Load(b.log_sum + begin + c, Full{});
      V weight = L::Exp(L::Sub(L::Mul(L::Load(scores + c, Full{}), scale), shift));
      L::Store(b.weights + r * queries + c, weight, Full{});
      V d = L::Sub(L::Load(d_weights + c, Full{}), L::Load(b.delta + begin + c, Full{}));
      L::Store(b.d_scores + r * queries + c, L::Mul(L::Mul(weight, scale), d), Full{});
    }
  }

  void TransposeKeys(const Strip<A>& key, int64_t even_rows, P* out) const {
    for (int64_t r = 0; r < even_rows; ++r) {
      for (int64_t d = 0; d < size_; ++d) {
        out[d * kAttentionBlock + r] = r < key.rows ? Packed::One(key.data[r * key.pitch + d]) : P{};
      }
    }
  }

  // Rows of fp32 -> the rows of an operand.
  void Narrow(const float* from, A* to) const {
    for (int64_t row = 0; row < length_; ++row) {
      ForLanes<L>(size_, [&](int64_t i, auto lanes) {
        L::Store(to + row * shape_.qkv_pitch() + i, L::Load(from + row * size_ + i, lanes), lanes);
      });
    }
  }

  void StoreTransposed(const float* from, const Strip<A>& to) {
    constexpr int64_t kRows = 16;
    float tile[kRows * kHeadSizeMax];
    for (int64_t row0 = 0; row0 < length_; row0 += kRows) {
      int64_t rows = Least(kRows, length_ - row0);
      for (int64_t d = 0; d < size_; ++d) {
        for (int64_t r = 0; r < kRows; ++r) tile[r * size_ + d] = from[d * padded_ + row0 + r];
      }
      for (int64_t r = 0; r < rows; ++r) {
        A* out = Mutable(to) + (row0 + r) * to.pitch;
        ForLanes<L>(size_, [&](int64_t i, auto lanes) {
          L::Store(out + i, L::Load(tile + r * size_ + i, lanes), lanes);
        });
      }
    }
  }

  static int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

  AttentionShape shape_;
  int64_t length_;
  int64_t padded_;
  int64_t size_;
  int64_t group_;
  float score_scale_;
  float* next_;
};

}  // namespace llmctl::engine::kernels
