// Where a job goes when it has no gang: back to the queue, aside, or to its end.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "coordinator/core/turn.h"

namespace llmctl::core {

// Terminal phases are never left again.
void EndJob(Turn& turn, Job& job, JobPhase phase, std::string reason);
// At once, or through Backoff.
void QueueAgain(Turn& turn, Job& job, std::string text, absl::Duration backoff);
void MarkSuspended(Turn& turn, Job& job);

}  // namespace llmctl::core
