// `llm-trainer train`: from a configuration file and, in a job, a shim to a finished run.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "worker/contract/exit_codes.h"
#include "worker/engine/kernels/isa.h"
#include "worker/trainer/log.h"
#include "worker/trainer/shim_link.h"

namespace llmctl::trainer {

struct TrainOptions {
  std::string config_path;
  // Of a run alone; in a job the assignment says.
  int64_t generation = 1;
  int threads = 1;
  engine::kernels::Isa isa = engine::kernels::Isa::kBest;
  bool pictures = false;  // the parent is a shim that takes them (self_picture.h)
};

// `link` null: alone, as the only rank. In a job the last collectives and the phase are recorded beside the
// configuration, in the shim's directory. `terminated` becomes true on SIGTERM.
absl::StatusOr<contract::ExitCode> Train(const TrainOptions& options, ShimLink* link,
                                         const std::atomic<bool>& terminated, const Log& log);

}  // namespace llmctl::trainer
