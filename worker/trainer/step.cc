#include "worker/trainer/step.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/status.h"
#include "worker/engine/optim/gradient_norm.h"
#include "worker/engine/optim/schedule.h"

namespace llmctl::trainer {
namespace {

using engine::comm::Axis;
using engine::comm::DataType;
using engine::comm::Op;

// 16 MiB: large enough for the full bandwidth of a network link.
constexpr int64_t kBucketElements = 4 << 20;

}  // namespace

int64_t CountTokens(const data::StepBatch& batch) {
  int64_t tokens = 0;
  for (const data::MicroBatch& micro : batch.micro_batches) {
    tokens += std::count_if(micro.targets.begin(), micro.targets.end(), [](int32_t target) { return target >= 0; });
  }
  return tokens;
}

StepRunner::StepRunner(const contract::TrainingConfig& config, TrainingState& state,
                       engine::comm::Communicator& communicator, contract::PhasePage& phases)
    : config_(config),
      state_(state),
      communicator_(communicator),
      phases_(phases),
      buckets_(state.model(), kBucketElements, communicator) {}

absl::StatusOr<double> StepRunner::LossAndGradients(const data::StepBatch& batch, int64_t tokens) {
  CHECK(!batch.micro_batches.empty()) << "every rank has a part of every global batch";
  double scale = 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1));
  double loss = 0;
  state_.model().ZeroGradients();
  for (const data::MicroBatch& micro : batch.micro_batches) {
    bool last = &micro == &batch.micro_batches.back();
    if (last) buckets_.Begin();
    engine::MicroBatch input = {.samples = micro.samples,
                                .sequence_length = micro.sequence_length,
                                .tokens = micro.inputs.data(),
                                .targets = micro.targets.data()};
    loss += state_.model().ForwardBackward(input, scale, last ? &buckets_ : nullptr).loss;
  }
  LLM_RETURN_IF_ERROR(buckets_.Finish());
  LLM_RETURN_IF_ERROR(
      communicator_.Collective("loss.sum", Axis::kData, Op::kAllReduceSum, {&loss, 1, DataType::kFloat64}));
  return loss * scale;
}

absl::StatusOr<StepResult> StepRunner::Run(const data::StepBatch& batch, int64_t tokens) {
  StepResult result = {.tokens = tokens};
  LLM_ASSIGN_OR_RETURN(result.loss, LossAndGradients(batch, tokens));
  contract::InPhase optimizer(&phases_, contract::Phase::kOptimizer);
  result.gradient_norm = engine::GradientNorm(state_.model().gradients(), state_.model().flat_size());
  result.learning_rate =
      engine::LearningRate(config_.schedule, config_.optimizer.learning_rate, config_.steps, state_.step);
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.gradient_norm);
  HitFailpoint("step.before_update");
  if (!result.skipped) {
    double factor = engine::ClipFactor(result.gradient_norm, config_.gradient_clip_norm);
    state_.optimizer->Update(state_.model(), result.learning_rate, factor);
  }
  state_.step += 1;
  state_.consumed_tokens += tokens;
  phases_.StepDone(state_.step);
  return result;
}

}  // namespace llmctl::trainer
