// What placement sees of the core's state: the jobs that want devices and the hosts that have some.
#pragma once

#include "coordinator/core/state.h"
#include "coordinator/placement/placement.h"

namespace llmctl::core {

placement::Snapshot MakeSnapshot(const State& state);

}  // namespace llmctl::core
