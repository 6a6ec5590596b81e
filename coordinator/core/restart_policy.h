// Is a failed job tried again, and when?
//
//   outlook never    no: it would fail the same way
//   outlook smaller  at once, with half the micro-batch, until that is one sequence (a device's memory that ran out)
//   a rule's limit   up to so many times, at once, beside all budgets (a host's memory that ran out)
//   user             up to the job's maxRestarts, at once
//   scheduler        at once: it was planned; counts as the infrastructure's
//   infrastructure,  at once the first time after a checkpoint has advanced, then after 1 s, 2 s, 4 s, ... 60 s; the
//   unknown          job's maxAttemptsWithoutProgress ends it
//
// Two budgets: only user failures spend the user's, and only progress pays for the infrastructure's.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "coordinator/model/job.h"

namespace llmctl::core {

struct Verdict {
  bool retry = false;
  absl::Duration backoff = absl::ZeroDuration();
  // Follows the cause. Final: why, and what the user can do; else what is left of the budget that pays.
  std::string note;
};

// Counts the failure in `job`.
Verdict JudgeFailure(Job& job, const Diagnosis& diagnosis);

}  // namespace llmctl::core
