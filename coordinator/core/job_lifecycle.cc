#include "coordinator/core/job_lifecycle.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::core {
namespace {

std::string EndText(const Job& job) {
  switch (job.phase) {
    case JobPhase::kSucceeded: return "The job has succeeded.";
    case JobPhase::kCancelled: return absl::StrCat("The job was cancelled: ", job.reason, ".");
    default:
      return absl::StrCat("The job has failed (", FailureClassName(job.failure_class), "): ", job.reason, ".");
  }
}

}  // namespace

void EndJob(Turn& turn, Job& job, JobPhase phase, std::string reason, FailureClass failure_class) {
  CHECK(IsTerminal(phase)) << JobPhaseName(phase);
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  job.phase = phase;
  job.reason = std::move(reason);
  job.failure_class = failure_class;
  job.suspend_requested = false;
  job.backoff = absl::ZeroDuration();
  job.end_time = turn.now.wall;
  turn.state.proven_hosts.erase(job.id);
  turn.state.waiting_reason.erase(job.id);
  turn.Disarm(job.id);
  turn.Log(job, JobPhaseName(phase), EndText(job));
}

void QueueAgain(Turn& turn, Job& job, std::string text, absl::Duration backoff) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  turn.Disarm(job.id);
  job.reason = text;
  job.suspend_requested = false;
  job.backoff = backoff;
  if (backoff > absl::ZeroDuration()) {
    job.phase = JobPhase::kBackoff;
    turn.Arm({Timer::Purpose::kBackoff, job.id, job.last_generation}, backoff);
    absl::StrAppend(&text, " Trying again in ", absl::FormatDuration(backoff), ".");
  } else {
    job.phase = JobPhase::kQueued;
    turn.RequestPlan();
  }
  turn.Log(job, "queued", std::move(text));
}

void MarkSuspended(Turn& turn, Job& job) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  turn.Disarm(job.id);
  turn.state.waiting_reason.erase(job.id);
  job.phase = JobPhase::kSuspended;
  job.suspend_requested = false;
  job.backoff = absl::ZeroDuration();
  std::string step = job.checkpoints.empty()
                         ? "it has no checkpoint and will start from the beginning"
                         : absl::StrCat("it will go on from the checkpoint of step ", job.checkpoints.back().step);
  job.reason = absl::StrCat("suspended by a user; ", step);
  turn.Log(job, "suspended", absl::StrCat("The job is suspended; ", step, "."));
}

}  // namespace llmctl::core
