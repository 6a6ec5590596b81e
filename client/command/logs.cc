#include <chrono>
#include <thread>

#include "client/command/verbs.h"
#include "client/output/progress_view.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

constexpr std::chrono::milliseconds kPollInterval{300};

v1::ReadLogRequest MakeRequest(const LogsOptions& options) {
  v1::ReadLogRequest request;
  request.set_id(options.job);
  request.set_rank(options.rank);
  request.set_attempt(options.attempt);
  request.set_stream(options.error_stream ? "stderr" : "stdout");
  return request;
}

// Prints what there is from request.offset on and moves the offset. True when the rank will write no more.
absl::StatusOr<bool> PrintRest(v1::ReadLogRequest& request, Session& session) {
  while (true) {
    LLM_ASSIGN_OR_RETURN(v1::ReadLogReply reply, session.cluster.ReadLog(request));
    session.out << reply.data();
    bool moved = reply.next_offset() > request.offset();
    request.set_offset(reply.next_offset());
    if (reply.end() || !moved) {
      session.out.flush();
      return reply.end();
    }
  }
}

absl::StatusOr<v1::Job> GetJob(const std::string& id, Session& session) {
  v1::GetJobRequest request;
  request.set_id(id);
  return session.cluster.GetJob(request);
}

bool IsNotYet(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsUnavailable(status);
}

// Attempt after attempt until the job has ended, unless one attempt was asked for.
absl::StatusOr<ExitCode> FollowLog(const LogsOptions& options, Session& session) {
  v1::ReadLogRequest request = MakeRequest(options);
  while (true) {
    LLM_ASSIGN_OR_RETURN(v1::Job job, GetJob(request.id(), session));
    request.set_id(job.id());
    if (options.attempt == 0 && job.attempt() != request.attempt()) {
      if (request.attempt() > 0) session.err << "--- attempt " << job.attempt() << " ---\n";
      request.set_attempt(job.attempt());
      request.set_offset(0);
    }
    absl::StatusOr<bool> end = PrintRest(request, session);
    // Before its first attempt a job has no log, and a host may be away for a moment.
    bool may_come = !HasEnded(job.phase()) && IsNotYet(end.status());
    if (!end.ok() && !may_come) return end.status();
    if (end.ok() && *end && (options.attempt > 0 || HasEnded(job.phase()))) return ExitCode::kOk;
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace

absl::StatusOr<ExitCode> Logs(const LogsOptions& options, Session& session) {
  if (options.follow) return FollowLog(options, session);
  v1::ReadLogRequest request = MakeRequest(options);
  LLM_RETURN_IF_ERROR(PrintRest(request, session).status());
  return ExitCode::kOk;
}

}  // namespace llmctl::client
