// What placement sees of the core's state: the jobs that want devices and the hosts that have some.
//
// Of the queue only the newcomers, unless room may have been made since the whole of it was planned: whom a plan has
// left out stays out while room only shrinks. So a submission costs the same however long the queue is.
#pragma once

#include "coordinator/core/state.h"
#include "coordinator/placement/placement.h"

namespace llmctl::core {

placement::Snapshot MakeSnapshot(const State& state);

}  // namespace llmctl::core
