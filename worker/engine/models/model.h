// Model: parameters in one flat vector, and the forward and backward passes over a micro-batch.
//
// No autograd: a model runs its layers forward, keeping what the backward pass needs in the arena, and then
// backward in reverse order. Weight gradients go to a GradSink in fp32, as soon as each is complete, so that
// reduction can overlap with the rest of the pass.
//
// Loss convention: ForwardBackward differentiates gradient_scale * (sum of token losses). The caller passes
// 1 / (valid tokens of the whole global batch), so any split into micro-batches and ranks gives one gradient.
//
// Single-threaded; runs under c10::InferenceMode.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/layout/memory.h"
#include "common/layout/model_shape.h"
#include "common/layout/parameters.h"
#include "worker/contract/phase_page.h"
#include "worker/engine/kernels/isa.h"
#include "worker/engine/kernels/number.h"
#include "worker/engine/layers/grad_sink.h"
#include "worker/engine/memory/arena.h"

namespace llmctl::engine {

using layout::Precision;

struct MicroBatch {
  int64_t samples = 0;
  int64_t sequence_length = 0;
  // [samples * sequence_length], row by row. targets < 0 are not counted.
  const int32_t* tokens = nullptr;
  const int32_t* targets = nullptr;
};

struct LossSum {
  double loss = 0;      // nats, summed over valid tokens
  int64_t tokens = 0;   // valid tokens
};

struct ModelOptions {
  Precision precision = Precision::kBf16;
  int64_t samples_max = 1;           // of a micro-batch
  int64_t sequence_length_max = 0;
  bool training = true;              // false: no gradients, no stash beyond one layer
  kernels::Isa isa = kernels::Isa::kBest;
  contract::PhasePage* phases = nullptr;  // told whether the pass is forward or backward; outlives the model
};

class Model {
 public:
  virtual ~Model() = default;

  // All parameters in flat order.
  virtual const std::vector<Parameter>& parameters() const = 0;
  // Elements of the flat vectors, padding included.
  virtual int64_t flat_size() const = 0;
  // Master weights and main gradients, [flat_size] fp32; gradients are null unless training. kFp64 models
  // have master64 and gradients64 instead, the others have null there.
  virtual float* master() = 0;
  virtual float* gradients() = 0;
  virtual double* master64() { return nullptr; }
  virtual double* gradients64() { return nullptr; }
  // What GEMMs read: [flat_size] bf16 bits in a kBf16 model, which an optimizer may write beside the master
  // weights instead of calling CastWeights(); null in others.
  virtual kernels::Bf16* weights() { return nullptr; }

  // Keyed initialisation: element i of a tensor depends on (seed, tensor name, i) only.
  virtual void Initialize(uint64_t seed) = 0;
  // Master weights -> the type the layers compute in. After Initialize, a load, or an optimizer step.
  virtual void CastWeights() = 0;
  // The next ForwardBackward sets the gradients instead of adding to them. Until then a pointer that gradients()
  // gave earlier may show old numbers; calling gradients() again clears them.
  virtual void ZeroGradients() = 0;

  // Adds to gradients(), or sets them after ZeroGradients(). `sink` may be null.
  virtual LossSum ForwardBackward(const MicroBatch& batch, double gradient_scale, GradSink* sink) = 0;
  virtual LossSum Forward(const MicroBatch& batch) = 0;
  // Logits of the last position of one sequence of `length` <= sequence_length_max tokens: [vocabulary].
  virtual void LastLogits(const int32_t* tokens, int64_t length, float* logits) = 0;
};

// Bytes of arena that CreateModel will take, exactly (layout::ModelBuffers in whole pages).
int64_t ModelArenaBytes(const layout::ModelShape& shape, const ModelOptions& options);

// InvalidArgument for a shape that layout::ValidateShape refuses. The arena must outlive the model.
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const layout::ModelShape& shape, const ModelOptions& options,
                                                   Arena& arena);

}  // namespace llmctl::engine
