// The trainer as a child process: in a process group of its own, killed with us, its output in our pipes.
//
// It dies with the shim (PR_SET_PDEATHSIG), which the kernel ties to the thread that forked: Start() must be
// called from a thread that lives as long as the process, the main one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/base/unique_fd.h"

namespace llmctl::shim {

struct TrainerProcess {
  pid_t pid = 0;
  int64_t start_ticks = 0;
  UniqueFd link;      // stream socket to the trainer
  UniqueFd output;    // its stdout, non-blocking
  UniqueFd errors;    // its stderr, non-blocking
};

struct TrainerStart {
  const std::vector<std::string>& argv;
  const std::vector<std::string>& environment;
  // What it does need not be soon: it yields to the host's other work as far as that can be taken back.
  bool in_background = false;
};

// Returns once the program runs in the child, or says why it does not.
absl::StatusOr<TrainerProcess> StartTrainer(const TrainerStart& start);

// Whatever its threads do is urgent from now on.
void BringToForeground(pid_t trainer);

}  // namespace llmctl::shim
