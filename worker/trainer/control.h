// Control: what a training run hears from and tells the outside.
//
// In a job that is the agent, over the shim (ShimControl); a trainer that runs alone answers itself
// (AloneControl). Nothing here blocks, but for Wait.
//
// Used by the training thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "worker/contract/exit_codes.h"
#include "worker/contract/messages.h"

namespace llmctl::trainer {

// Why the run must end at once, without a checkpoint.
struct Halt {
  contract::ExitCode exit_code = contract::kExitInfrastructure;
  std::string reason;
};

struct Requests {
  bool save = false;
  std::optional<std::string> yield;  // reason: save, then end
  std::optional<Halt> halt;
  std::vector<contract::CheckpointCommitReply> commit_replies;
};

class Control {
 public:
  virtual ~Control() = default;

  // `step` steps are done; the next one is about to begin.
  virtual void Ready(int64_t step) = 0;
  virtual void Report(const contract::Progress& progress) = 0;
  virtual void Commit(const contract::CheckpointCommit& commit) = 0;

  // What has come since the last call.
  virtual Requests Take() = 0;
  // Waits until something may have come, at most for `timeout`.
  virtual void Wait(absl::Duration timeout) = 0;
};

}  // namespace llmctl::trainer
