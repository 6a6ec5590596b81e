#include "coordinator/core/restart_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/deadlines.h"

namespace llmctl::core {
namespace {

Verdict Final(std::string why, const Diagnosis& diagnosis) {
  if (!diagnosis.advice.empty()) absl::StrAppend(&why, "; ", diagnosis.advice);
  return {.retry = false, .note = std::move(why)};
}

Verdict JudgeLimited(Job& job, const Diagnosis& diagnosis) {
  int& retries = job.limited_retries[diagnosis.budget];
  if (retries >= diagnosis.retries_most) {
    return Final(absl::StrCat("; it was tried again ", retries, retries == 1 ? " time" : " times",
                              " after the same failure (", diagnosis.rule, ")"),
                 diagnosis);
  }
  ++retries;
  return {.retry = true,
          .note = absl::StrCat("; attempts left after ", diagnosis.rule, ": ", diagnosis.retries_most - retries)};
}

Verdict JudgeSmaller(Job& job, const Diagnosis& diagnosis) {
  int before = job.micro_batch_size;
  if (before == 1) return Final("; a micro-batch is one sequence already", diagnosis);
  job.micro_batch_size = before / 2;
  return {.retry = true,
          .note = absl::StrCat("; tried again with micro-batches of ", job.micro_batch_size, " instead of ", before,
                               ", and more of them")};
}

Verdict JudgeUser(Job& job, const Diagnosis& diagnosis) {
  int most = job.requirements.max_restarts;
  if (job.user_restarts >= most) {
    return Final(absl::StrCat("; retried ", job.user_restarts, " times, and maxRestarts is ", most), diagnosis);
  }
  ++job.user_restarts;
  return {.retry = true, .note = absl::StrCat("; ", most - job.user_restarts, " of ", most, " restarts are left")};
}

Verdict JudgeInfrastructure(Job& job, const Diagnosis& diagnosis) {
  int failures = ++job.infrastructure_failures;
  int most = job.requirements.max_attempts_without_progress;
  if (failures >= most) {
    return Final(absl::StrCat("; that was failure ", failures, " of the infrastructure without a new checkpoint, ",
                              "and maxAttemptsWithoutProgress is ", most),
                 diagnosis);
  }
  Verdict verdict{.retry = true,
                  .note = absl::StrCat("; failure ", failures, " without a new checkpoint, ", most, " end the job")};
  if (failures > 1) {
    // The shift is bounded before it can overflow: 1 s << 6 is beyond the cap.
    verdict.backoff = std::min(kBackoffFirst * (int64_t{1} << std::min(failures - 2, 6)), kBackoffMax);
  }
  return verdict;
}

// Nobody failed, so there is nothing to wait for; that it never gets anywhere is still a failure.
Verdict JudgePlanned(Job& job, const Diagnosis& diagnosis) {
  Verdict verdict = JudgeInfrastructure(job, diagnosis);
  verdict.backoff = absl::ZeroDuration();
  return verdict;
}

}  // namespace

Verdict JudgeFailure(Job& job, const Diagnosis& diagnosis) {
  if (diagnosis.outlook == Outlook::kNever) return Final("", diagnosis);
  if (diagnosis.outlook == Outlook::kSmaller) return JudgeSmaller(job, diagnosis);
  if (diagnosis.retries_most > 0) return JudgeLimited(job, diagnosis);
  switch (diagnosis.failure_class) {
    case FailureClass::kUser: return JudgeUser(job, diagnosis);
    case FailureClass::kScheduler: return JudgePlanned(job, diagnosis);
    case FailureClass::kInfrastructure:
    case FailureClass::kUnknown: return JudgeInfrastructure(job, diagnosis);
    case FailureClass::kNone: break;
  }
  CHECK(false) << job.id << ": a failure without a class";
  return {};
}

}  // namespace llmctl::core
