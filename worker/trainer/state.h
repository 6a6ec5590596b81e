// What a run carries from step to step, and nothing else: the same state and the same configuration give the same
// next step, to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "common/layout/model_shape.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/trainer_config.h"
#include "worker/engine/checkpoint/ledger.h"
#include "worker/engine/kernels/isa.h"
#include "worker/engine/memory/arena.h"
#include "worker/engine/models/model.h"
#include "worker/engine/optim/adamw.h"

namespace llmctl::trainer {

// A model and the memory it lives in.
struct OwnedModel {
  std::unique_ptr<engine::Arena> arena;
  std::unique_ptr<engine::Model> model;
};

using ModelFactory =
    std::function<absl::StatusOr<OwnedModel>(const layout::ModelShape&, const engine::ModelOptions&)>;

struct TrainingState {
  OwnedModel weights;
  std::unique_ptr<engine::Arena> moments;
  std::unique_ptr<engine::AdamW> optimizer;
  int64_t step = 0;             // steps done, the skipped ones included
  int64_t consumed_tokens = 0;  // valid targets
  checkpoint::Ledger ledger;    // rank 0 only: it is who writes it down

  engine::Model& model() { return *weights.model; }
  int64_t skipped_steps() const { return step - optimizer->updates(); }
};

// CreateModel in an arena of the size it asks for.
absl::StatusOr<OwnedModel> CreateOwnedModel(const layout::ModelShape& shape, const engine::ModelOptions& options);

layout::ModelShape ShapeOf(const contract::ModelConfig& config, int vocabulary_size);
absl::StatusOr<engine::Precision> ParsePrecision(const std::string& name);

// Freshly initialized from the configuration's seed. `phases` may be null and outlives the state.
absl::StatusOr<TrainingState> CreateTrainingState(const contract::TrainerConfig& config, int vocabulary_size,
                                                  engine::kernels::Isa isa, const ModelFactory& create_model,
                                                  contract::PhasePage* phases);

}  // namespace llmctl::trainer
