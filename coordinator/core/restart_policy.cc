#include "coordinator/core/restart_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/deadlines.h"

namespace llmctl::core {
namespace {

Verdict JudgeInfrastructure(Job& job) {
  int failures = ++job.infrastructure_failures;
  if (failures >= job.requirements.max_attempts_without_progress) {
    return {.hint = absl::StrCat("; that was failure ", failures, " of the infrastructure without a new checkpoint, ",
                                 "and maxAttemptsWithoutProgress is ", job.requirements.max_attempts_without_progress)};
  }
  if (failures == 1) return {.retry = true};
  // The shift is bounded before it can overflow: 1 s << 6 is beyond the cap.
  absl::Duration backoff = kBackoffFirst * (int64_t{1} << std::min(failures - 2, 6));
  return {.retry = true, .backoff = std::min(backoff, kBackoffMax)};
}

}  // namespace

Verdict JudgeFailure(Job& job, FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::kConfig:
    case FailureClass::kTimeLimit: return {};
    case FailureClass::kUser:
      if (job.user_restarts >= job.requirements.max_restarts) {
        return {.hint = absl::StrCat("; retried ", job.user_restarts, " times, and maxRestarts is ",
                                     job.requirements.max_restarts)};
      }
      ++job.user_restarts;
      return {.retry = true};
    case FailureClass::kOutOfMemory:
      if (job.out_of_memory_restarts >= 1) {
        return {.hint = "; it ran out of memory once before: use a smaller microBatchSize or more devices"};
      }
      ++job.out_of_memory_restarts;
      return {.retry = true};
    case FailureClass::kInfrastructure: return JudgeInfrastructure(job);
    case FailureClass::kNone: break;
  }
  CHECK(false) << job.id << ": a failure without a class";
  return {};
}

}  // namespace llmctl::core
