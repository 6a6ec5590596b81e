// One optimization step of one rank.
//
//   micro-batches forward and backward -> gradients summed over the ranks -> norm, clip -> AdamW -> cast
//
// Losses and gradients are weighted by token: every rank scales by the valid tokens of the whole global batch,
// so that any split into micro-batches and ranks gives one gradient. A step whose loss or gradient norm is
// not finite changes nothing; all ranks see the same sums, hence decide alike.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "worker/contract/trainer_config.h"
#include "worker/data/shards/loader.h"
#include "worker/engine/comm/collective.h"
#include "worker/engine/optim/gradient_buckets.h"
#include "worker/trainer/state.h"

namespace llmctl::trainer {

struct StepResult {
  double loss = 0;  // mean over the tokens of the global batch
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;        // of the global batch
  bool skipped = false;      // not finite: the state is as before, but for the step count
  double data_wait_seconds = 0;  // that the loader had nothing ready; the run's to say
};

// Valid targets.
int64_t CountTokens(const data::StepBatch& batch);

class StepRunner {
 public:
  // All arguments outlive the runner.
  StepRunner(const contract::TrainingConfig& config, TrainingState& state, engine::comm::Communicator& communicator,
             contract::PhasePage& phases);

  // `tokens`: valid targets of all ranks. Advances state.step and consumed_tokens.
  absl::StatusOr<StepResult> Run(const data::StepBatch& batch, int64_t tokens);

 private:
  absl::StatusOr<double> LossAndGradients(const data::StepBatch& batch, int64_t tokens);

  const contract::TrainingConfig& config_;
  TrainingState& state_;
  engine::comm::Communicator& communicator_;
  contract::PhasePage& phases_;
  engine::GradientBuckets buckets_;
};

}  // namespace llmctl::trainer
