// What must hold of every job, checked after each step for the jobs it changed and for all in simulation.
#pragma once

#include <string>

#include "coordinator/core/state.h"

namespace llmctl::core {

// The first invariant that `job` breaks, in words; empty when all hold.
std::string FindJobViolation(const State& state, const Job& job);

}  // namespace llmctl::core
