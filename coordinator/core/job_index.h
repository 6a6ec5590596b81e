// Keeping State::index: where a job stands follows from its phase, and whether a plan has left it out.
//
// Within a step the index is that of the step before; a handler that goes by it looks at the phase as well.
#pragma once

#include "common/base/ids.h"
#include "coordinator/core/state.h"

namespace llmctl::core {

// After the job has changed, or is gone.
void Reindex(State& state, const JobId& id);
// After loading.
void ReindexAll(State& state);

}  // namespace llmctl::core
