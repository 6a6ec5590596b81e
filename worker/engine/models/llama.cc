#include "worker/engine/models/llama.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include <c10/core/InferenceMode.h>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/rng.h"

namespace llmctl::engine {
namespace {

void CheckBatch(const MicroBatch& batch, const ModelOptions& options, int64_t vocabulary) {
  CHECK(batch.samples > 0 && batch.samples <= options.samples_max) << batch.samples << " samples";
  CHECK(batch.sequence_length > 0 && batch.sequence_length <= options.sequence_length_max)
      << batch.sequence_length << " tokens a sample";
  for (int64_t i = 0; i < batch.samples * batch.sequence_length; ++i) {
    CHECK(batch.tokens[i] >= 0 && batch.tokens[i] < vocabulary) << "token " << batch.tokens[i] << " at " << i;
    CHECK(batch.targets == nullptr || batch.targets[i] < vocabulary) << "target " << batch.targets[i] << " at " << i;
  }
}

}  // namespace

template <typename A>
Llama<A>::Shared::Shared(const BufferSet& buffers)
    : branch(buffers.Get<A>("branch")), attention(buffers.Get<R>("attention")),
      d_stream(buffers.Get<R>("gradient.stream")), d_hidden(buffers.Get<A>("gradient.hidden")),
      d_qkv(buffers.Get<A>("gradient.qkv")), d_gate_up(buffers.Get<A>("gradient.gate_up")),
      d_ffn_hidden(buffers.Get<A>("gradient.ffn_hidden")), d_weight(buffers.Get<A>("gradient.weight")) {
  if constexpr (std::is_same_v<A, R>) {
    d_stream_operand = d_stream;
  } else {
    d_stream_operand = buffers.Get<A>("gradient.stream_operand");
  }
}

template <typename A>
Llama<A>::Llama(const layout::ModelShape& shape, const ModelOptions& options,
                const kernels::KernelTable<A>& kernels, const BufferSet& buffers)
    : shape_(shape), options_(options), table_(layout::Parameters(shape)), kernels_(kernels),
      master_(buffers.Get<R>("master")),
      weights_(std::is_same_v<A, R> ? buffers.Get<A>("master") : buffers.Get<A>("weights")),
      gradients_(buffers.Get<R>("gradients")), head_input_(buffers.Get<A>("head_input")),
      logits_(buffers.Get<A>("logits")), shared_(buffers),
      rope_{buffers.Get<R>("rope"), buffers.Get<R>("rope") + options.sequence_length_max * shape.head_size() / 2},
      embedding_(MakeEmbedding(buffers)), final_norm_(MakeFinalNorm(buffers)), head_(MakeHead(buffers)) {
  rope_.Fill(options.sequence_length_max, shape.head_size(), shape.rope_theta);
  blocks_.reserve(shape.layers);
  for (int64_t layer = 0; layer < shape.layers; ++layer) blocks_.push_back(MakeBlock(layer, buffers));
}

template <typename A>
const Parameter& Llama<A>::Find(absl::string_view name) const {
  auto it = std::find_if(table_.parameters.begin(), table_.parameters.end(),
                         [&](const Parameter& parameter) { return parameter.name == name; });
  CHECK(it != table_.parameters.end()) << std::string(name);
  return *it;
}

template <typename A>
typename RmsNorm<A>::Weights Llama<A>::NormWeights(absl::string_view name) const {
  const Parameter& parameter = Find(name);
  return {.columns = shape_.hidden, .epsilon = shape_.norm_epsilon, .weight = master_ + parameter.offset,
          .gradient = gradients_ == nullptr ? nullptr : gradients_ + parameter.offset, .parameter = &parameter};
}

template <typename A>
typename Linear<A>::Weights Llama<A>::LinearWeights(absl::string_view name, size_t count) const {
  const Parameter* first = &Find(name);
  typename Linear<A>::Weights weights;
  weights.in = first->shape[1];
  int64_t end = first->offset;
  for (const Parameter* parameter = first; parameter != first + count; ++parameter) {
    CHECK_EQ(parameter->offset, end) << parameter->name << " must follow the parameter before it without padding";
    weights.out += parameter->shape[0];
    end += parameter->count;
    weights.parameters.push_back(parameter);
  }
  weights.weight = weights_ + first->offset;
  if (gradients_ != nullptr) weights.gradient = gradients_ + first->offset;
  weights.product = shared_.d_weight;
  return weights;
}

template <typename A>
typename Llama<A>::Block Llama<A>::MakeBlock(int64_t layer, const BufferSet& buffers) const {
  std::string weights = absl::StrCat("model.layers.", layer, ".");
  // Without a backward pass all layers use the buffers of the first.
  auto stash = [&](const char* name) { return absl::StrCat("layer.", options_.training ? layer : 0, ".", name); };
  auto operand = [&](const char* name) { return buffers.Get<A>(stash(name)); };
  auto residual = [&](const char* name) { return buffers.Get<R>(stash(name)); };
  const Shared& s = shared_;
  A* d_norm_operand = std::is_same_v<A, R> ? nullptr : s.d_stream_operand;

  R* attention_stream = residual("attention_stream");
  const R* before = attention_stream;  // the embedding writes there
  if (layer > 0) {
    before = buffers.Get<R>(absl::StrCat("layer.", options_.training ? layer - 1 : 0, ".ffn_stream"));
  }
  return Block{
      .attention_norm = {kernels_, NormWeights(weights + "input_layernorm.weight"),
                         {before, layer > 0 ? s.branch : nullptr, attention_stream,
                          residual("attention_norm.scale"), operand("attention_input"), s.d_hidden, s.d_stream,
                          d_norm_operand}},
      .qkv = {kernels_, LinearWeights(weights + "self_attn.q_proj.weight", 3),
              {operand("attention_input"), operand("qkv"), s.d_hidden, s.d_qkv}},
      .attention = {kernels_, {shape_.heads, shape_.kv_heads, shape_.head_size()}, rope_,
                    {operand("qkv"), residual("attention.log_sum"), operand("attention_output"), s.d_qkv,
                     s.d_hidden, s.attention}},
      .output = {kernels_, LinearWeights(weights + "self_attn.o_proj.weight", 1),
                 {operand("attention_output"), s.branch, s.d_hidden, s.d_stream_operand}},
      .ffn_norm = {kernels_, NormWeights(weights + "post_attention_layernorm.weight"),
                   {attention_stream, s.branch, residual("ffn_stream"), residual("ffn_norm.scale"),
                    operand("ffn_input"), s.d_hidden, s.d_stream, d_norm_operand}},
      .gate_up = {kernels_, LinearWeights(weights + "mlp.gate_proj.weight", 2),
                  {operand("ffn_input"), operand("gate_up"), s.d_hidden, s.d_gate_up}},
      .swiglu = {kernels_, shape_.ffn, {operand("gate_up"), operand("ffn_hidden"), s.d_gate_up, s.d_ffn_hidden}},
      .down = {kernels_, LinearWeights(weights + "mlp.down_proj.weight", 1),
               {operand("ffn_hidden"), s.branch, s.d_ffn_hidden, s.d_stream_operand}},
  };
}

template <typename A>
Embedding<A> Llama<A>::MakeEmbedding(const BufferSet& buffers) const {
  const Parameter& parameter = Find("model.embed_tokens.weight");
  typename Embedding<A>::Weights weights = {shape_.hidden, master_ + parameter.offset, nullptr, &parameter};
  if (gradients_ != nullptr) weights.gradient = gradients_ + parameter.offset;
  return {kernels_, weights, {buffers.Get<R>("layer.0.attention_stream"), shared_.d_stream}};
}

template <typename A>
RmsNorm<A> Llama<A>::MakeFinalNorm(const BufferSet& buffers) const {
  int64_t last = options_.training ? shape_.layers - 1 : 0;
  A* d_norm_operand = std::is_same_v<A, R> ? nullptr : shared_.d_stream_operand;
  return {kernels_, NormWeights("model.norm.weight"),
          {buffers.Get<R>(absl::StrCat("layer.", last, ".ffn_stream")), shared_.branch,
           buffers.Get<R>("final_stream"), buffers.Get<R>("final_norm.scale"), head_input_, shared_.d_hidden,
           shared_.d_stream, d_norm_operand}};
}

template <typename A>
Linear<A> Llama<A>::MakeHead(const BufferSet& buffers) const {
  // The gradient of a tied table is complete only when the embedding has added its part.
  typename Linear<A>::Weights weights =
      LinearWeights(shape_.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", 1);
  if (shape_.tie_embeddings) weights.parameters.clear();
  return {kernels_, std::move(weights), {head_input_, logits_, shared_.d_hidden, logits_}};
}

template <typename A>
float* Llama<A>::master() {
  if constexpr (std::is_same_v<R, float>) return master_;
  return nullptr;
}

template <typename A>
float* Llama<A>::gradients() {
  if (gradients_stale_) ClearGradients();
  if constexpr (std::is_same_v<R, float>) return gradients_;
  return nullptr;
}

template <typename A>
double* Llama<A>::master64() {
  if constexpr (std::is_same_v<R, double>) return master_;
  return nullptr;
}

template <typename A>
double* Llama<A>::gradients64() {
  if (gradients_stale_) ClearGradients();
  if constexpr (std::is_same_v<R, double>) return gradients_;
  return nullptr;
}

template <typename A>
kernels::Bf16* Llama<A>::weights() {
  if constexpr (std::is_same_v<A, kernels::Bf16>) return weights_;
  return nullptr;
}

template <typename A>
void Llama<A>::Initialize(uint64_t seed) {
  for (const Parameter& parameter : table_.parameters) {
    R* weight = master_ + parameter.offset;
    if (parameter.init_std == 0) {
      std::fill(weight, weight + parameter.count, R(1));
      continue;
    }
    KeyedRandom random(seed, absl::StrCat("init/", parameter.name));
    // Through float, so that every precision starts from the same weights.
    for (int64_t i = 0; i < parameter.count; ++i) {
      weight[i] = static_cast<float>(parameter.init_std * random.Normal(static_cast<uint64_t>(i)));
    }
  }
  CastWeights();
}

template <typename A>
void Llama<A>::CastWeights() {
  if constexpr (!std::is_same_v<A, R>) kernels_.cast(master_, table_.flat_size, weights_);
}

template <typename A>
void Llama<A>::ZeroGradients() {
  gradients_stale_ = true;
}

template <typename A>
void Llama<A>::ClearGradients() {
  std::fill(gradients_, gradients_ + table_.flat_size, R(0));
  gradients_stale_ = false;
}

// Those that layers only add to: norms, and the embedding unless the head sets it.
template <typename A>
void Llama<A>::ClearAddedGradients() {
  for (const Parameter& parameter : table_.parameters) {
    bool is_norm = parameter.shape.size() == 1;
    bool is_embedding = parameter.offset == 0 && !shape_.tie_embeddings;
    if (is_norm || is_embedding) {
      std::fill(gradients_ + parameter.offset, gradients_ + parameter.offset + parameter.count, R(0));
    }
  }
}

template <typename A>
void Llama<A>::Bind(int64_t samples, int64_t sequence_length) {
  if (samples == bound_samples_ && sequence_length == bound_length_) return;
  int64_t rows = samples * sequence_length;
  for (Block& block : blocks_) {
    block.attention_norm.Bind(rows);
    block.qkv.Bind(rows);
    block.attention.Bind(samples, sequence_length);
    block.output.Bind(rows);
    block.ffn_norm.Bind(rows);
    block.gate_up.Bind(rows);
    block.swiglu.Bind(rows);
    block.down.Bind(rows);
  }
  final_norm_.Bind(rows);
  head_.Bind(rows);
  bound_samples_ = samples;
  bound_length_ = sequence_length;
}

template <typename A>
void Llama<A>::RunBlocks(const MicroBatch& batch) {
  CheckBatch(batch, options_, shape_.vocabulary);
  Bind(batch.samples, batch.sequence_length);
  embedding_.Bind(batch.tokens, batch.samples * batch.sequence_length);
  embedding_.Forward();
  for (const Block& block : blocks_) {
    HitFailpoint("model.forward");
    block.attention_norm.Forward();
    block.qkv.Forward();
    block.attention.Forward();
    block.output.Forward();
    block.ffn_norm.Forward();
    block.gate_up.Forward();
    block.swiglu.Forward();
    block.down.Forward();
  }
  final_norm_.Forward();
}

template <typename A>
LossSum Llama<A>::RunForward(const MicroBatch& batch, double gradient_scale) {
  contract::InPhase forward(options_.phases, contract::Phase::kForward);
  RunBlocks(batch);
  head_.Forward();
  kernels::CrossEntropySum sum = kernels_.cross_entropy({.rows = batch.samples * batch.sequence_length,
                                                         .columns = shape_.vocabulary,
                                                         .targets = batch.targets,
                                                         .gradient_scale = gradient_scale,
                                                         .logits = logits_});
  return {sum.loss, sum.tokens};
}

template <typename A>
LossSum Llama<A>::Forward(const MicroBatch& batch) {
  c10::InferenceMode inference;
  return RunForward(batch, 0);
}

template <typename A>
LossSum Llama<A>::ForwardBackward(const MicroBatch& batch, double gradient_scale, GradSink* sink) {
  c10::InferenceMode inference;
  CHECK(options_.training) << "the model was made without gradients";
  LossSum loss = RunForward(batch, gradient_scale);
  contract::InPhase backward(options_.phases, contract::Phase::kBackward);
  Accumulation accumulation = gradients_stale_ ? Accumulation::kSet : Accumulation::kAdd;
  if (gradients_stale_) ClearAddedGradients();
  gradients_stale_ = false;  // before the sink hears of any: it may ask for gradients()
  head_.BackwardInput();
  head_.BackwardWeight(accumulation, sink);
  final_norm_.Backward(Accumulation::kSet, sink);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) BackwardBlock(*block, accumulation, sink);
  embedding_.BackwardWeight(sink);
  return loss;
}

template <typename A>
void Llama<A>::BackwardBlock(const Block& block, Accumulation accumulation, GradSink* sink) {
  block.down.BackwardInput();
  block.down.BackwardWeight(accumulation, sink);
  block.swiglu.BackwardInput();
  block.gate_up.BackwardInput();
  block.gate_up.BackwardWeight(accumulation, sink);
  block.ffn_norm.Backward(Accumulation::kAdd, sink);
  block.output.BackwardInput();
  block.output.BackwardWeight(accumulation, sink);
  block.attention.BackwardInput();
  block.qkv.BackwardInput();
  block.qkv.BackwardWeight(accumulation, sink);
  block.attention_norm.Backward(Accumulation::kAdd, sink);
}

template <typename A>
void Llama<A>::LastLogits(const int32_t* tokens, int64_t length, float* logits) {
  c10::InferenceMode inference;
  RunBlocks({.samples = 1, .sequence_length = length, .tokens = tokens, .targets = nullptr});
  Linear<A> last(kernels_,
                 LinearWeights(shape_.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", 1),
                 {head_input_ + (length - 1) * shape_.hidden, logits_, shared_.d_hidden, logits_});
  last.Bind(1);
  last.Forward();
  if constexpr (std::is_same_v<R, float>) {
    kernels_.widen(logits_, shape_.vocabulary, logits);
  } else {
    for (int64_t i = 0; i < shape_.vocabulary; ++i) logits[i] = static_cast<float>(logits_[i]);
  }
}

template class Llama<float>;
template class Llama<kernels::Bf16>;
template class Llama<double>;

}  // namespace llmctl::engine
