#include "coordinator/core/quarantine.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"

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

}  // namespace

JobEventRecord HoldJob(Job& job, const std::string& why, Instant now) {
  CHECK(!IsTerminal(job.phase)) << job.id << " has already " << JobPhaseName(job.phase);
  job.quarantined = true;
  job.backoff = absl::ZeroDuration();
  job.suspend_requested = false;
  job.reason = absl::StrCat("quarantined: ", why);
  if (job.cancel_requested) {
    job.phase = JobPhase::kCancelled;
    job.reason = absl::StrCat(job.cancel_reason, "; ", job.reason);
  } else if (job.time_limit_reached) {
    job.phase = JobPhase::kFailed;
    job.failure_class = FailureClass::kTimeLimit;
  } else {
    job.phase = JobPhase::kSuspended;
    absl::StrAppend(&job.reason, "; `llmctl resume ", job.id.value(), "` lets it go on from its last checkpoint");
  }
  if (IsTerminal(job.phase)) job.end_time = now.wall;
  return NextEvent(job, absl::StrCat("The job is kept apart: ", why, "."), now);
}

JobEventRecord BuryJob(Job& job, const std::string& why, Instant now) {
  Job rest;
  rest.id = job.id;
  rest.name = job.name;
  rest.project = job.project;
  rest.labels = job.labels;
  rest.spec = job.spec;
  rest.idempotency_key = job.idempotency_key;
  rest.submit_time = job.submit_time;
  rest.last_event = job.last_event;
  rest.phase = JobPhase::kFailed;
  rest.failure_class = FailureClass::kInfrastructure;
  rest.quarantined = true;
  rest.end_time = now.wall;
  rest.reason = absl::StrCat("quarantined: ", why, "; its record is kept (see `llmctl admin quarantine`)");
  job = std::move(rest);
  return NextEvent(job, absl::StrCat("The job is given up: ", why, "."), now);
}

}  // namespace llmctl::core
