#include "coordinator/model/stand_in.h"

#include "absl/strings/str_cat.h"

namespace llmctl {

Job StandInFor(const Job& job, const std::string& why, absl::Time now) {
  Job rest;
  rest.id = job.id;
  rest.name = job.name;
  rest.project = job.project;
  rest.labels = job.labels;
  rest.spec = job.spec;
  rest.idempotency_key = job.idempotency_key;
  rest.submit_time = job.submit_time;
  rest.start_time = job.start_time;
  rest.last_event = job.last_event;
  rest.quarantined = true;
  rest.stand_in = true;
  rest.reason = absl::StrCat("quarantined: ", why, "; its record is kept (see `llmctl admin quarantine`)");
  if (!IsTerminal(job.phase)) {
    rest.phase = JobPhase::kSuspended;
    return rest;
  }
  rest.phase = job.phase;
  rest.failure = job.failure;
  rest.first_cause = job.first_cause;
  rest.cancel_requested = job.phase == JobPhase::kCancelled;
  rest.cancel_reason = job.cancel_reason;
  rest.end_time = job.end_time == absl::InfinitePast() ? now : job.end_time;
  if (!job.reason.empty()) rest.reason = absl::StrCat(job.reason, "; ", rest.reason);
  bool without_class = job.phase == JobPhase::kFailed && job.failure.failure_class == FailureClass::kNone;
  if (without_class) rest.failure = {.rule = "record-lost", .failure_class = FailureClass::kUnknown};
  return rest;
}

Node StandInFor(const Node& node, const std::string& why) {
  Node rest;
  rest.id = node.id;
  rest.boot_id = node.boot_id;
  rest.incarnation = node.incarnation;
  rest.state = NodeState::kReady;  // as all are until they have come back, or have not
  rest.standing.service = NodeService::kCordoned;
  rest.standing.service_reason =
      absl::StrCat(why, ", so whether it was closed is not known; `llmctl nodes uncordon` opens it");
  return rest;
}

}  // namespace llmctl
