// A training run of one rank, from the dataset on disk to the last committed checkpoint.
//
//   open data -> build the model -> restore (rank 0 reads, all receive) -> Ready -> steps -> final checkpoint
//
// Between steps the ranks agree, by one small sum, on what comes next: the tokens of the step, and whether any of
// them was asked to save or to yield. Nobody acts on a request alone, so collectives never come in different
// orders.
//
// Stopped anywhere and resumed on the same layout, a run gives the same bits as one that never stopped.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

#include "common/base/ids.h"
#include "worker/contract/exit_codes.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/trainer_config.h"
#include "worker/engine/comm/collective.h"
#include "worker/trainer/checkpoints.h"
#include "worker/trainer/control.h"
#include "worker/trainer/state.h"

namespace llmctl::trainer {

struct RunSetup {
  const contract::TrainerConfig& config;
  GenerationId generation;
  engine::comm::Communicator& communicator;
  contract::PhasePage& phases;
  Control& control;
  Log log;
  engine::kernels::Isa isa = engine::kernels::Isa::kBest;
  ModelFactory create_model = CreateOwnedModel;
  // What the bits depend on besides the inputs; see checkpoint::Manifest.
  std::map<std::string, std::string> numerics;
};

// kExitOk after the last step, kExitYielded after yielding; errors carry their exit code (failure.h).
absl::StatusOr<contract::ExitCode> RunTraining(const RunSetup& setup);

}  // namespace llmctl::trainer
