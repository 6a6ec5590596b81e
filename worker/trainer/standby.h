// `llm-trainer standby`: the program is loaded and waits under its shim for a job, so that a start costs no start of a
// process.
//
// It is given the job by its shim's first word; the configurations lie in the working directory by then, which the
// agent has given the rank's name. The environment is that of the job from that moment on, before anything of the job
// has read it; what libraries have read when they were loaded is the agent's business (worker/agent/core/standby.cc).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llmctl::trainer {

// Says `waiting` and blocks until the shim speaks, whose words stay in the link. False: it has gone, there is no job.
absl::StatusOr<bool> AwaitJob(int shim_fd);

// Replaces the environment by that of `path`, a shim's configuration, and the way to the shim. Before any thread reads
// it.
absl::Status TakeEnvironment(const std::string& path, int shim_fd);

}  // namespace llmctl::trainer
