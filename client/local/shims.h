// The shims that a local cluster left running: trainers outlive agents by design, so whoever takes a cluster down
// has to look.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/time/time.h"

namespace llmctl::client {

// Processes that run llm-shim with a --dir under `directory` (absolute).
std::vector<pid_t> FindShims(const std::string& directory);

// Waits until there are none, at most `patience`; those that are left.
std::vector<pid_t> AwaitNoShims(const std::string& directory, absl::Duration patience);

}  // namespace llmctl::client
