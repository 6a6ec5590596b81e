// The agent's supervisor: which trainers run on this host, and what the coordinator knows of them. A state
// machine without I/O, clock, randomness or locks, as coordinator/core is; the simulator runs it too.
//
//   fencing      The highest generation seen per job is durable before its first process starts. Whatever is
//                not newer is refused, so a delayed order cannot bring back what has been stopped.
//   idempotency  An order given twice does nothing twice: a start for a running generation starts only missing
//                ranks, a stop for an unknown one answers GangReleased.
//   absence      While the coordinator is away nothing changes for the trainers: checkpoint commits wait in a
//                stored outbox, store requests and own keys are sent again after the next Welcome, exits stay
//                with their shims until a heartbeat sent after them is answered. Only after the job's orphan
//                timeout are the ranks stopped.
//   re-adoption  An agent that starts finds the shims of its earlier life and dials only when they have told
//                how they are, so its Hello is true.
//
// Single-threaded. Same state and events, same commands.
#pragma once

#include <string>
#include <vector>

#include "common/base/instant.h"
#include "worker/agent/core/command.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/state.h"

namespace llmctl::agent {

std::vector<Command> Step(State& state, const Event& event, Instant now);

// Every invariant that `state` breaks, in words; empty when all hold. For the simulator and tests.
std::vector<std::string> FindViolations(const State& state);

}  // namespace llmctl::agent
