#include "coordinator/core/job_lifecycle.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/failure_class.h"

namespace llmctl::core {
namespace {

std::string EndText(const Job& job) {
  switch (job.phase) {
    case JobPhase::kSucceeded: return "The job has succeeded.";
    case JobPhase::kCancelled: return absl::StrCat("The job was cancelled: ", job.reason, ".");
    default:
      return absl::StrCat("The job has failed (", DescribeDiagnosis(job.failure), "): ", job.reason, ".");
  }
}

}  // namespace

void EndJob(Turn& turn, Job& job, JobPhase phase, std::string reason) {
  CHECK(IsTerminal(phase)) << JobPhaseName(phase);
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  job.phase = phase;
  job.reason = std::move(reason);
  if (phase != JobPhase::kFailed) {
    job.failure = {};
    job.first_cause.clear();
  }
  job.retry_time = absl::InfinitePast();
  job.suspend_requested = false;
  job.backoff = absl::ZeroDuration();
  job.end_time = turn.now.wall;
  turn.state.proven_hosts.erase(job.id);
  turn.Disarm(job.id);
  turn.Log(job, JobPhaseName(phase), EndText(job));
}

void QueueAgain(Turn& turn, Job& job, std::string text, absl::Duration backoff) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  turn.Disarm(job.id);
  job.reason = text;
  job.suspend_requested = false;
  job.backoff = backoff;
  job.retry_time = absl::InfinitePast();
  if (backoff > absl::ZeroDuration()) {
    job.phase = JobPhase::kBackoff;
    job.retry_time = turn.now.wall + backoff;
    turn.Arm({Timer::Purpose::kBackoff, job.id, job.last_generation}, backoff);
    absl::StrAppend(&text, " Trying again in ", absl::FormatDuration(backoff), ".");
  } else {
    job.phase = JobPhase::kQueued;
    turn.RequestPlanOfNewcomers();
  }
  turn.Log(job, "queued", std::move(text));
}

void MarkSuspended(Turn& turn, Job& job) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  turn.Disarm(job.id);
  job.phase = JobPhase::kSuspended;
  job.retry_time = absl::InfinitePast();
  job.suspend_requested = false;
  job.backoff = absl::ZeroDuration();
  std::string step = job.checkpoints.empty()
                         ? "it has no checkpoint and will start from the beginning"
                         : absl::StrCat("it will go on from the checkpoint of step ", job.checkpoints.back().step);
  job.reason = absl::StrCat("suspended by a user; ", step);
  turn.Log(job, "suspended", absl::StrCat("The job is suspended; ", step, "."));
}

}  // namespace llmctl::core
