// Cancel, suspend, resume: what a user may ask of a job in each phase.
//
// Cancel wins over everything that has not ended the job yet, at any time. Suspend and resume are refused where they
// would change nothing, so that a user learns that the job is not where he took it to be.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/job_lifecycle.h"

namespace llmctl::core {
namespace {

void Reply(Turn& turn, RequestId request, const JobId& job, absl::Status status = absl::OkStatus()) {
  ReplyToUser reply;
  reply.request = request;
  reply.job = job;
  reply.status = std::move(status);
  turn.Send(std::move(reply));
}

// The job, or null after having answered that there is none.
Job* Find(Turn& turn, RequestId request, const JobId& id, absl::string_view verb) {
  auto found = turn.state.jobs.find(id);
  if (found != turn.state.jobs.end()) return &found->second;
  Reply(turn, request, {},
        absl::NotFoundError(absl::StrCat(verb, " job ", id.value(), ": there is no such job; see `llmctl list`")));
  return nullptr;
}

absl::Status Refusal(const Job& job, absl::string_view verb, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(verb, " job ", job.id.value(), ": ", why));
}

// Whether ranks of the gang may be at work, so that stopping it after a checkpoint makes sense.
StopRequest GentlestStop(const Job& job) {
  return job.phase == JobPhase::kRunning ? StopRequest::kYield : StopRequest::kPlain;
}

}  // namespace

void OnJobCancelled(Turn& turn, const JobCancelled& event) {
  Job* job = Find(turn, event.request, event.job, "cancel");
  if (job == nullptr) return;
  if (job->phase == JobPhase::kCancelled || job->cancel_requested) {
    Reply(turn, event.request, job->id);
    return;
  }
  if (IsTerminal(job->phase)) {
    Reply(turn, event.request, job->id,
          Refusal(*job, "cancel", absl::StrCat("it has already ", JobPhaseName(job->phase))));
    return;
  }
  job->cancel_requested = true;
  job->cancel_reason = event.reason.empty() ? "by a user" : event.reason;
  job->suspend_requested = false;
  // Durable with this step; the ranks stop after it.
  Reply(turn, event.request, job->id);
  if (HasLiveGang(job->phase)) {
    job->reason = "being cancelled";
    turn.Log(*job, "cancelling", absl::StrCat("The job is being cancelled: ", job->cancel_reason, "."));
    StopGang(turn, *job, StopRequest::kPlain);
  } else {
    EndJob(turn, *job, JobPhase::kCancelled, job->cancel_reason);
  }
}

void OnJobSuspended(Turn& turn, const JobSuspended& event) {
  Job* job = Find(turn, event.request, event.job, "suspend");
  if (job == nullptr) return;
  if (IsTerminal(job->phase) || job->cancel_requested || job->time_limit_reached) {
    absl::string_view why = job->cancel_requested ? "it is cancelled" : "it has ended or is about to";
    Reply(turn, event.request, job->id, Refusal(*job, "suspend", why));
    return;
  }
  Reply(turn, event.request, job->id);
  if (job->phase == JobPhase::kSuspended || job->suspend_requested) return;
  if (!HasLiveGang(job->phase)) {
    MarkSuspended(turn, *job);
    return;
  }
  job->suspend_requested = true;
  turn.Log(*job, "suspending", "The job is being suspended.");
  if (job->phase == JobPhase::kStopping) return;  // a stop is under way; it leads to Suspended now
  job->reason = "being suspended";
  StopGang(turn, *job, GentlestStop(*job));
}

void OnJobResumed(Turn& turn, const JobResumed& event) {
  Job* job = Find(turn, event.request, event.job, "resume");
  if (job == nullptr) return;
  if (job->stand_in) {
    Reply(turn, event.request, job->id, Refusal(*job, "resume", job->reason));
    return;
  }
  if (job->phase != JobPhase::kSuspended && !job->suspend_requested) {
    Reply(turn, event.request, job->id,
          Refusal(*job, "resume", absl::StrCat("it is ", JobPhaseName(job->phase), ", not suspended")));
    return;
  }
  Reply(turn, event.request, job->id);
  if (job->suspend_requested) {
    // Its gang is still being stopped; what was begun ends, then the job is queued again.
    job->suspend_requested = false;
    turn.Log(*job, "resumed", "The job is to go on once it has stopped.");
    return;
  }
  job->quarantined = false;
  QueueAgain(turn, *job, "The job is resumed.", absl::ZeroDuration());
}

}  // namespace llmctl::core
