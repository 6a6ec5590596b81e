// Is a failed job tried again, and when?
//
//   config          never: it would fail the same way
//   user            up to the job's maxRestarts, at once
//   oom             once, at once: memory may have been short for another reason
//   infrastructure  at once the first time after a checkpoint has advanced, then after 1 s, 2 s, 4 s, ... 60 s; the
//                   job's maxAttemptsWithoutProgress ends it
//
// Only user failures spend the user's budget.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "coordinator/model/job.h"

namespace llmctl::core {

struct Verdict {
  bool retry = false;
  absl::Duration backoff = absl::ZeroDuration();
  std::string hint;  // when final: follows the cause
};

// Counts the failure in `job`.
Verdict JudgeFailure(Job& job, FailureClass failure_class);

}  // namespace llmctl::core
