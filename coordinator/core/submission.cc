// Accepting a job, once per idempotency key; forgetting an ended one.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "coordinator/core/handlers.h"

namespace llmctl::core {
namespace {

std::string MakeKey(const std::string& project, const std::string& idempotency_key) {
  // Projects hold no slash, so two pairs never make one key.
  return absl::StrCat(project, "/", idempotency_key);
}

void AnswerKnownKey(Turn& turn, const JobSubmitted& event, const Job& known) {
  ReplyToUser reply;
  reply.request = event.request;
  reply.job = known.id;
  reply.already_existed = true;
  if (known.spec != event.spec || known.name != event.name) {
    reply.status = absl::AlreadyExistsError(
        absl::StrCat("submit ", event.name, ": idempotency key \"", event.idempotency_key, "\" was used for job ",
                     known.id.value(), " (", known.name, ") with another specification; use a new key"));
  }
  turn.Send(std::move(reply));
}

}  // namespace

std::string KeyOf(const Job& job) { return MakeKey(job.project, job.idempotency_key); }

void OnJobSubmitted(Turn& turn, const JobSubmitted& event) {
  if (!event.idempotency_key.empty()) {
    auto known = turn.state.jobs_by_key.find(MakeKey(event.project, event.idempotency_key));
    if (known != turn.state.jobs_by_key.end()) {
      AnswerKnownKey(turn, event, turn.state.jobs.at(known->second));
      return;
    }
  }
  Job job;
  job.id = JobId(absl::StrCat("j-", turn.state.counters.next_job++));
  job.name = event.name;
  job.project = event.project;
  job.labels = event.labels;
  job.spec = event.spec;
  job.requirements = event.requirements;
  job.micro_batch_size = event.requirements.micro_batch_size;
  job.idempotency_key = event.idempotency_key;
  job.submit_time = turn.now.wall;
  if (!job.idempotency_key.empty()) turn.state.jobs_by_key.emplace(KeyOf(job), job.id);
  Job& stored = turn.state.jobs.emplace(job.id, std::move(job)).first->second;
  turn.Log(stored, "submitted", "The job was accepted.");
  ReplyToUser reply;
  reply.request = event.request;
  reply.job = stored.id;
  turn.Send(std::move(reply));
  turn.RequestPlanOfNewcomers();
}

void OnJobDeleted(Turn& turn, const JobDeleted& event) {
  ReplyToUser reply;
  reply.request = event.request;
  auto found = turn.state.jobs.find(event.job);
  if (found == turn.state.jobs.end()) {
    reply.status = absl::NotFoundError(absl::StrCat("delete job ", event.job.value(), ": there is no such job"));
  } else if (!IsTerminal(found->second.phase)) {
    reply.job = event.job;
    reply.status = absl::FailedPreconditionError(absl::StrCat("delete job ", event.job.value(), ": it is ",
                                                              JobPhaseName(found->second.phase), "; cancel it first"));
  } else {
    if (!found->second.idempotency_key.empty()) turn.state.jobs_by_key.erase(KeyOf(found->second));
    turn.state.jobs.erase(found);
    turn.Forget(event.job);
  }
  turn.Send(std::move(reply));
}

}  // namespace llmctl::core
