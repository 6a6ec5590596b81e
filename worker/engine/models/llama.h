// Llama: RMSNorm before each branch, rotary positions, grouped-query attention, SwiGLU, tied or untied head.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/layers/attention.h"
#include "worker/engine/layers/embedding.h"
#include "worker/engine/layers/linear.h"
#include "worker/engine/layers/rms_norm.h"
#include "worker/engine/layers/swiglu.h"
#include "worker/engine/memory/buffer_set.h"
#include "worker/engine/models/model.h"

namespace llmctl::engine {

// Operand type `A`: float, kernels::Bf16 or double.
template <typename A>
class Llama final : public Model {
 public:
  using R = kernels::Residual<A>;

  // `buffers` holds layout::ModelBuffers for the same shape and options.
  Llama(const layout::ModelShape& shape, const ModelOptions& options, const kernels::KernelTable<A>& kernels,
        const BufferSet& buffers);

  const std::vector<Parameter>& parameters() const override { return table_.parameters; }
  int64_t flat_size() const override { return table_.flat_size; }
  float* master() override;
  float* gradients() override;
  double* master64() override;
  double* gradients64() override;
  kernels::Bf16* weights() override;

  void Initialize(uint64_t seed) override;
  void CastWeights() override;
  void ZeroGradients() override;
  LossSum ForwardBackward(const MicroBatch& batch, double gradient_scale, GradSink* sink) override;
  LossSum Forward(const MicroBatch& batch) override;
  void LastLogits(const int32_t* tokens, int64_t length, float* logits) override;

 private:
  struct Block {
    RmsNorm<A> attention_norm;
    Linear<A> qkv;
    Attention<A> attention;
    Linear<A> output;
    RmsNorm<A> ffn_norm;
    Linear<A> gate_up;
    SwiGlu<A> swiglu;
    Linear<A> down;
  };
  // The buffers that all layers share.
  struct Shared {
    explicit Shared(const BufferSet& buffers);

    A* branch;
    R* attention;
    R* d_stream;
    A* d_stream_operand;  // what GEMMs read: d_stream itself where A is R
    A* d_hidden;
    A* d_qkv;
    A* d_gate_up;
    A* d_ffn_hidden;
    A* d_weight;
  };

  const Parameter& Find(absl::string_view name) const;
  typename RmsNorm<A>::Weights NormWeights(absl::string_view name) const;
  // Of the `count` adjacent parameters from `name` on, seen as one [out, in].
  typename Linear<A>::Weights LinearWeights(absl::string_view name, size_t count) const;
  Block MakeBlock(int64_t layer, const BufferSet& buffers) const;
  Embedding<A> MakeEmbedding(const BufferSet& buffers) const;
  RmsNorm<A> MakeFinalNorm(const BufferSet& buffers) const;
  Linear<A> MakeHead(const BufferSet& buffers) const;

  void Bind(int64_t samples, int64_t sequence_length);
  void RunBlocks(const MicroBatch& batch);
  LossSum RunForward(const MicroBatch& batch, double gradient_scale);
  void ClearGradients();
  void ClearAddedGradients();
  void BackwardBlock(const Block& block, Accumulation accumulation, GradSink* sink);

  layout::ModelShape shape_;
  ModelOptions options_;
  layout::ParameterTable table_;
  const kernels::KernelTable<A>& kernels_;
  R* master_;
  A* weights_;     // master_ itself where A is R
  R* gradients_;   // null without training
  A* head_input_;
  A* logits_;
  Shared shared_;
  RopeTable<R> rope_;
  Embedding<A> embedding_;
  std::vector<Block> blocks_;
  RmsNorm<A> final_norm_;
  Linear<A> head_;
  // ZeroGradients was called and the vector still holds old numbers; see ForwardBackward.
  bool gradients_stale_ = false;
  int64_t bound_samples_ = 0;
  int64_t bound_length_ = 0;
};

extern template class Llama<float>;
extern template class Llama<kernels::Bf16>;
extern template class Llama<double>;

}  // namespace llmctl::engine
