// The coordinator's core: a state machine without I/O, clock, randomness or locks.
//
// Step() takes one event and the present moment, changes the state and returns what must be done, in order.
// Single-threaded: the runtime's core thread, or the simulator. Same state and events, same commands.
#pragma once

#include <string>
#include <vector>

#include "common/base/instant.h"
#include "coordinator/core/command.h"
#include "coordinator/core/event.h"
#include "coordinator/core/state.h"
#include "coordinator/model/focus.h"

namespace llmctl::core {

// `focus` hears which entity is being worked on, until the step is done; it may be null.
std::vector<Command> Step(State& state, const Event& event, Instant now, Focus* focus = nullptr);

// Every invariant that `state` breaks, in words; empty when all hold. Step() runs the cheap ones itself and
// aborts on a breach; the simulator runs these after every step.
std::vector<std::string> FindViolations(const State& state);

// Rebuilds the volatile part of a state whose records have just been loaded.
void RestoreVolatile(State& state, Focus* focus = nullptr);

}  // namespace llmctl::core
