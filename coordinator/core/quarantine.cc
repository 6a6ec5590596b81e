#include "coordinator/core/quarantine.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/failure_class.h"
#include "coordinator/model/stand_in.h"

namespace llmctl::core {
namespace {

JobEventRecord NextEvent(Job& job, const std::string& text, Instant now) {
  return {.sequence = ++job.last_event,
          .time = now.wall,
          .attempt = job.last_attempt,
          .generation = job.last_generation,
          .kind = "quarantined",
          .text = text};
}

// Suspended, unless an end was decided already and told to users.
void LeavePhase(Job& job, Instant now) {
  job.quarantined = true;
  job.backoff = absl::ZeroDuration();
  job.suspend_requested = false;
  job.reason.clear();
  job.phase = JobPhase::kSuspended;
  if (job.cancel_requested) {
    job.phase = JobPhase::kCancelled;
    job.reason = job.cancel_reason;
  } else if (job.time_limit_reached) {
    job.phase = JobPhase::kFailed;
    job.reason = "the job has run for its time limit";
    job.failure = SeenByCore("time-limit", FailureClass::kScheduler, Outlook::kNever);
  }
  if (IsTerminal(job.phase)) job.end_time = now.wall;
}

}  // namespace

JobEventRecord HoldJob(Job& job, const std::string& why, Instant now) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  LeavePhase(job, now);
  absl::StrAppend(&job.reason, job.reason.empty() ? "" : "; ", "quarantined: ", why);
  if (!IsTerminal(job.phase)) {
    absl::StrAppend(&job.reason, "; `llmctl resume ", job.id.value(), "` lets it go on from its last checkpoint");
  }
  return NextEvent(job, absl::StrCat("The job is kept apart: ", why, "."), now);
}

JobEventRecord BuryJob(Job& job, const std::string& why, Instant now) {
  if (!IsTerminal(job.phase)) LeavePhase(job, now);
  job = StandInFor(job, why, now.wall);
  return NextEvent(job, absl::StrCat("The job is taken out: ", why, "."), now);
}

}  // namespace llmctl::core
