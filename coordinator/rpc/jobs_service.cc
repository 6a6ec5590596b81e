#include "coordinator/rpc/jobs_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/spec/validate.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/job_lookup.h"
#include "coordinator/rpc/job_mapping.h"
#include "coordinator/rpc/reason.h"
#include "coordinator/rpc/watch_job.h"

namespace llmctl::rpc {
namespace {

constexpr int64_t kLogBytesMost = int64_t{1} << 20;
// A specification is written by hand; it is stored with the job and sent to every host of it.
constexpr size_t kSpecBytesMost = 256 << 10;
constexpr size_t kKeyBytesMost = 256;
// How long a read waits for a revision that has not happened, if the call's own deadline does not end it before.
constexpr absl::Duration kRevisionPatience = absl::Seconds(5);

absl::StatusOr<v1::JobSpec> CheckSubmission(const v1::SubmitRequest& request) {
  if (!request.has_spec()) return absl::InvalidArgumentError("submit: the request has no job specification");
  if (size_t bytes = request.spec().ByteSizeLong(); bytes > kSpecBytesMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("submit: the specification has ", bytes, " bytes, at most ", kSpecBytesMost, " are taken"));
  }
  if (request.idempotency_key().size() > kKeyBytesMost) {
    return absl::InvalidArgumentError(absl::StrCat("submit: the idempotency key has ", request.idempotency_key().size(),
                                                   " bytes, at most ", kKeyBytesMost, " are taken"));
  }
  return spec::ResolveJobSpec(request.spec(), {.absolute_paths = true});
}

// The job that a dry run would make, as far as it can be known.
v1::Job Preview(const v1::JobSpec& spec) {
  v1::Job job;
  job.set_name(spec.metadata().name());
  job.set_project(spec.metadata().project());
  *job.mutable_labels() = spec.metadata().labels();
  job.set_phase(v1::JOB_PHASE_QUEUED);
  job.set_priority(spec.priority());
  *job.mutable_spec() = spec;
  return job;
}

struct LogSource {
  NodeId node;
  runtime::LogQuery query;
};

// The attempt that is asked for: 0 is the newest.
absl::StatusOr<PastAttempt> FindAttempt(const Job& job, int64_t number) {
  if (!job.attempt) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " is ", JobPhaseName(job.phase),
                                                      " and has not run yet: there are no logs"));
  }
  if (number == 0 || number == job.attempt->number) {
    PastAttempt newest{.number = job.attempt->number, .generation = job.attempt->generation, .nodes = {}};
    for (const RankState& rank : job.attempt->ranks) newest.nodes.push_back(rank.node);
    return newest;
  }
  if (number < 1 || number > job.last_attempt) {
    return absl::NotFoundError(absl::StrCat("job ", job.id.value(), " has had attempts 1 to ", job.last_attempt,
                                            "; asked for attempt ", number));
  }
  for (const PastAttempt& past : job.past_attempts) {
    if (past.number == number) return past;
  }
  return absl::NotFoundError(absl::StrCat("job ", job.id.value(), ": the logs of attempt ", number,
                                          " are gone: it started no process, or too many attempts have followed it"));
}

absl::StatusOr<LogSource> FindLog(const runtime::Snapshot& snapshot, const v1::ReadLogRequest& request) {
  LLM_ASSIGN_OR_RETURN(runtime::JobView view, FindJob(snapshot, request.id()));
  const Job& job = *view.job;
  LLM_ASSIGN_OR_RETURN(PastAttempt attempt, FindAttempt(job, request.attempt()));
  if (request.rank() < 0 || request.rank() >= static_cast<int>(attempt.nodes.size())) {
    return absl::NotFoundError(absl::StrCat("job ", job.id.value(), " has ranks 0 to ", attempt.nodes.size() - 1,
                                            "; asked for rank ", request.rank()));
  }
  std::string stream = request.stream().empty() ? "stdout" : request.stream();
  if (stream != "stdout" && stream != "stderr" && stream != "evidence") {
    return absl::InvalidArgumentError(
        absl::StrCat("stream: expected stdout, stderr or evidence, found '", stream, "'"));
  }
  if (request.max_bytes() < 0) return absl::InvalidArgumentError("max_bytes: expected at least 1");
  int64_t bytes_max = request.max_bytes() == 0 ? kLogBytesMost : std::min(request.max_bytes(), kLogBytesMost);
  return LogSource{attempt.nodes[request.rank()],
                   {.generation = {job.id, attempt.number, attempt.generation},
                    .rank = request.rank(),
                    .stream = stream,
                    .offset = request.offset(),
                    .bytes_max = bytes_max}};
}

absl::StatusOr<runtime::EventReader::Question> FindEvents(const runtime::Snapshot& snapshot,
                                                          const v1::ListEventsRequest& request) {
  LLM_ASSIGN_OR_RETURN(runtime::JobView view, FindJob(snapshot, request.id()));
  LLM_ASSIGN_OR_RETURN(int size, PageSize(request.page_size()));
  LLM_ASSIGN_OR_RETURN(int64_t after, PageStart(request.page_token()));
  // One more than asked for tells whether there is a next page.
  return runtime::EventReader::Question{.job = view.job->id, .after = after, .limit = size + 1};
}

}  // namespace

grpc::ServerUnaryReactor* JobsService::Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                              v1::SubmitReply* reply) {
  absl::StatusOr<v1::JobSpec> spec = CheckSubmission(*request);
  if (!spec.ok()) return FinishNow(context, spec.status());
  if (request->dry_run()) {
    *reply->mutable_job() = Preview(*spec);
    reply->set_revision(runtime_.snapshot()->revision());
    return FinishNow(context, absl::OkStatus());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.Ask(ToSubmission(*spec, request->idempotency_key()), [this, reactor, reply](const runtime::Reply& outcome) {
    if (outcome.job.job) *reply->mutable_job() = ShowJob(runtime_, outcome.job);
    reply->set_already_existed(outcome.already_existed);
    reply->set_revision(outcome.revision);
    reactor->Finish(ToGrpc(outcome.status));
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobsService::Get(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                           v1::Job* reply) {
  std::shared_ptr<const runtime::Snapshot> snapshot = runtime_.snapshot();
  if (request->min_revision() <= snapshot->revision()) {
    return FinishNow(context, ShowJobAt(*snapshot, *request, *reply));
  }
  Instant now = Now();
  absl::Duration patience = std::min(kRevisionPatience, absl::FromChrono(context->deadline()) - now.wall);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.hub().AwaitRevision(request->min_revision(), now.monotonic + patience, [this, reactor, request, reply] {
    reactor->Finish(ToGrpc(ShowJobAt(*runtime_.snapshot(), *request, *reply)));
  });
  return reactor;
}

absl::Status JobsService::ShowJobAt(const runtime::Snapshot& snapshot, const v1::GetJobRequest& request,
                                    v1::Job& reply) const {
  if (request.min_revision() > snapshot.revision()) {
    return absl::OutOfRangeError(absl::StrCat("min_revision ", request.min_revision(),
                                              " has not happened: this coordinator is at ", snapshot.revision(),
                                              "; was its data directory replaced?"));
  }
  LLM_ASSIGN_OR_RETURN(runtime::JobView view, FindJob(snapshot, request.id()));
  reply = ShowJob(runtime_, view);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* JobsService::List(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                            v1::ListJobsReply* reply) {
  return FinishNow(context, ListJobs(runtime_, *request, *reply));
}

grpc::ServerUnaryReactor* JobsService::Change(grpc::CallbackServerContext* context, runtime::UserRequest request,
                                              v1::JobReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.Ask(std::move(request), [this, reactor, reply](const runtime::Reply& outcome) {
    if (outcome.job.job) *reply->mutable_job() = ShowJob(runtime_, outcome.job);
    reply->set_revision(outcome.revision);
    reactor->Finish(ToGrpc(outcome.status));
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobsService::Cancel(grpc::CallbackServerContext* context, const v1::CancelJobRequest* request,
                                              v1::JobReply* reply) {
  if (absl::Status status = CheckReason(request->reason()); !status.ok()) return FinishNow(context, status);
  absl::StatusOr<runtime::JobView> view = FindJob(*runtime_.snapshot(), request->id());
  if (!view.ok()) return FinishNow(context, view.status());
  return Change(context, core::JobCancelled{.job = view->job->id, .reason = request->reason()}, reply);
}

grpc::ServerUnaryReactor* JobsService::Suspend(grpc::CallbackServerContext* context,
                                               const v1::SuspendJobRequest* request, v1::JobReply* reply) {
  absl::StatusOr<runtime::JobView> view = FindJob(*runtime_.snapshot(), request->id());
  if (!view.ok()) return FinishNow(context, view.status());
  return Change(context, core::JobSuspended{.job = view->job->id}, reply);
}

grpc::ServerUnaryReactor* JobsService::Resume(grpc::CallbackServerContext* context, const v1::ResumeJobRequest* request,
                                              v1::JobReply* reply) {
  absl::StatusOr<runtime::JobView> view = FindJob(*runtime_.snapshot(), request->id());
  if (!view.ok()) return FinishNow(context, view.status());
  return Change(context, core::JobResumed{.job = view->job->id}, reply);
}

grpc::ServerUnaryReactor* JobsService::Delete(grpc::CallbackServerContext* context, const v1::DeleteJobRequest* request,
                                              v1::DeleteJobReply* reply) {
  absl::StatusOr<runtime::JobView> view = FindJob(*runtime_.snapshot(), request->id());
  if (!view.ok()) return FinishNow(context, view.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.Ask(core::JobDeleted{.job = view->job->id}, [reactor, reply](const runtime::Reply& outcome) {
    reply->set_revision(outcome.revision);
    reactor->Finish(ToGrpc(outcome.status));
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::Job>* JobsService::Watch(grpc::CallbackServerContext*,
                                                      const v1::WatchJobRequest* request) {
  return WatchJob(runtime_, *request);
}

grpc::ServerUnaryReactor* JobsService::ReadLog(grpc::CallbackServerContext* context, const v1::ReadLogRequest* request,
                                               v1::ReadLogReply* reply) {
  absl::StatusOr<LogSource> source = FindLog(*runtime_.snapshot(), *request);
  if (!source.ok()) return FinishNow(context, source.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.logs().Ask(source->node, source->query, Now(), [reactor, reply](absl::StatusOr<runtime::LogPiece> piece) {
    if (piece.ok()) {
      reply->set_data(std::move(piece->data));
      reply->set_next_offset(piece->next_offset);
      reply->set_end(piece->end);
    }
    reactor->Finish(ToGrpc(piece.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobsService::ListCheckpoints(grpc::CallbackServerContext* context,
                                                       const v1::ListCheckpointsRequest* request,
                                                       v1::ListCheckpointsReply* reply) {
  absl::StatusOr<runtime::JobView> view = FindJob(*runtime_.snapshot(), request->id());
  if (!view.ok()) return FinishNow(context, view.status());
  const std::vector<CheckpointRecord>& checkpoints = view->job->checkpoints;
  for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) *reply->add_checkpoints() = ToProto(*it);
  return FinishNow(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* JobsService::ListEvents(grpc::CallbackServerContext* context,
                                                  const v1::ListEventsRequest* request, v1::ListEventsReply* reply) {
  absl::StatusOr<runtime::EventReader::Question> question = FindEvents(*runtime_.snapshot(), *request);
  if (!question.ok()) return FinishNow(context, question.status());
  size_t size = question->limit - 1;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.events().Ask(*question, [reactor, reply, size](absl::StatusOr<std::vector<JobEventRecord>> events) {
    if (events.ok()) {
      bool more = events->size() > size;
      if (more) events->resize(size);
      for (const JobEventRecord& event : *events) *reply->add_events() = ToProto(event);
      if (more) reply->set_next_page_token(absl::StrCat(events->back().sequence));
    }
    reactor->Finish(ToGrpc(events.status()));
  });
  return reactor;
}

}  // namespace llmctl::rpc
