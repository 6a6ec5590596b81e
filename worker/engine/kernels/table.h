// The table of kernels: everything a layer does that is not a GEMM.
//
// There are three columns: AVX-512, AVX2, and a plain fp64 reference, which tests trust and compare the others
// with. Each kernel is one function pointer with an argument struct; a layer holds a reference to the table it
// was made for. Matrices are row-major; a `pitch` is the distance of two rows in elements. Kernels use the
// calling thread, allocate nothing and add in a fixed order: the same input gives the same bits.
#pragma once

#include <cstdint>

#include "worker/engine/kernels/isa.h"
#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

// sum = x + branch; out = sum / rms(sum) * weight.
template <typename A>
struct NormForward {
  int64_t rows;
  int64_t columns;
  double epsilon;
  const Residual<A>* x;
  const A* branch;  // may be null: sum = x
  const Residual<A>* weight;
  Residual<A>* sum;  // may be x
  A* out;
  Residual<A>* scale;  // [rows], 1 / rms
};

template <typename A>
struct NormBackward {
  int64_t rows;
  int64_t columns;
  const A* d_out;
  const Residual<A>* sum;
  const Residual<A>* scale;
  const Residual<A>* weight;
  bool add;               // d_sum += rather than =
  Residual<A>* d_sum;
  A* d_sum_operand;       // the same as an operand; may be null
  Residual<A>* d_weight;  // added to
};

// Rotates pairs (i, i + head_size / 2) of `heads` adjacent heads of each row by its position's angles.
template <typename A>
struct Rope {
  int64_t rows;
  int64_t sequence_length;  // row r is at position r % sequence_length
  int64_t heads;
  int64_t head_size;
  int64_t pitch;
  const Residual<A>* cosine;  // [sequence_length, head_size / 2]
  const Residual<A>* sine;
  bool inverse;
  A* x;
};

// out = silu(gate) * up, where a row of gate_up is gate, then up.
template <typename A>
struct SwiGluForward {
  int64_t rows;
  int64_t columns;  // of out
  const A* gate_up;
  A* out;
};

template <typename A>
struct SwiGluBackward {
  int64_t rows;
  int64_t columns;
  const A* gate_up;
  const A* d_out;
  A* d_gate_up;
};

// Causal attention of `samples` sequences. A row of qkv holds heads queries, kv_heads keys, kv_heads values;
// query head h reads key-value head h / (heads / kv_heads).
struct AttentionShape {
  int64_t samples;
  int64_t sequence_length;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_size;

  int64_t qkv_pitch() const { return (heads + 2 * kv_heads) * head_size; }
  int64_t out_pitch() const { return heads * head_size; }
};

template <typename A>
struct AttentionForward {
  AttentionShape shape;
  const A* qkv;
  A* out;
  Residual<A>* log_sum;    // [samples, heads, sequence_length], log of the softmax denominators
  Residual<A>* workspace;  // [layout::AttentionWorkspaceElements]
};

template <typename A>
struct AttentionBackward {
  AttentionShape shape;
  const A* qkv;
  const A* out;
  const A* d_out;
  const Residual<A>* log_sum;
  A* d_qkv;
  Residual<A>* workspace;
};

// Rows of the table by token id. Ids are in range.
template <typename R>
struct EmbeddingForward {
  int64_t rows;
  int64_t columns;
  const int32_t* tokens;
  const R* table;
  R* out;
};

template <typename R>
struct EmbeddingBackward {
  int64_t rows;
  int64_t columns;
  const int32_t* tokens;
  const R* d_out;
  R* d_table;  // added to
};

struct CrossEntropySum {
  double loss;     // nats, over rows with a target >= 0
  int64_t tokens;  // such rows
};

// Replaces the logits by gradient_scale * d(loss)/d(logits), unless gradient_scale is 0: then they stay.
template <typename A>
struct CrossEntropy {
  int64_t rows;
  int64_t columns;
  const int32_t* targets;
  double gradient_scale;
  A* logits;
};

// One step of AdamW (Loshchilov and Hutter 2019, as in PyTorch) over a range of the flat vectors.
template <typename R>
struct AdamWStep {
  int64_t count;
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  int64_t step;           // 1 at the first call
  double gradient_scale;  // of clipping
  const R* gradient;
  R* master;
  R* first_moment;
  R* second_moment;
  Bf16* weights;  // receives the rounded master weights; may be null
};

template <typename R>
struct OptimizerKernels {
  double (*sum_of_squares)(const R* x, int64_t count);
  void (*adamw)(const AdamWStep<R>& step);
};

template <typename A>
struct KernelTable {
  using R = Residual<A>;

  void (*norm_forward)(const NormForward<A>&);
  void (*norm_backward)(const NormBackward<A>&);
  void (*rope)(const Rope<A>&);
  void (*swiglu_forward)(const SwiGluForward<A>&);
  void (*swiglu_backward)(const SwiGluBackward<A>&);
  void (*attention_forward)(const AttentionForward<A>&);
  void (*attention_backward)(const AttentionBackward<A>&);
  void (*embedding_forward)(const EmbeddingForward<R>&);
  void (*embedding_backward)(const EmbeddingBackward<R>&);
  CrossEntropySum (*cross_entropy)(const CrossEntropy<A>&);
  // out = x rounded to an operand.
  void (*cast)(const R* x, int64_t count, A* out);
  // out = x.
  void (*widen)(const A* x, int64_t count, R* out);
  // sum += x.
  void (*accumulate)(const A* x, int64_t count, R* sum);
  OptimizerKernels<R> optimizer;
};

// `isa` as ResolveIsa returns it; the fp64 column is the same for all.
template <typename A>
const KernelTable<A>& Kernels(Isa isa);

template <>
const KernelTable<float>& Kernels<float>(Isa isa);
template <>
const KernelTable<Bf16>& Kernels<Bf16>(Isa isa);
template <>
const KernelTable<double>& Kernels<double>(Isa isa);

}  // namespace llmctl::engine::kernels
