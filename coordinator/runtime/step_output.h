// What one step of the core asks for, sorted by when it may happen: record changes to commit, commands that may
// leave only when those are durable, and inward ones (timers, plans) that nothing outside can see.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "coordinator/core/command.h"
#include "coordinator/core/state.h"
#include "coordinator/model/plan.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

struct StepOutput {
  // Whole records as they are in the state after the step. Any change brings the counters along.
  std::vector<store::Change> changes;
  std::vector<core::Command> outbox;
  std::vector<core::Command> inward;
  int64_t revision = 0;  // of the state after the step
  // Of a plan that was applied: whom it left out, and why. Not durable, but shown only after the submissions before it.
  std::vector<Unplaced> left_out;
  // Not of the core's: hosts that want to know when this and all before it is durable, by their link.
  std::map<int64_t, std::function<void()>> acknowledge;
};

StepOutput SortCommands(const core::State& state, std::vector<core::Command> commands);

// The state that a store's records make, volatile part included.
// `focus` hears whose record is being worked on; it may be null.
core::State StateFromRecords(store::Records records, Focus* focus = nullptr);

}  // namespace llmctl::runtime
