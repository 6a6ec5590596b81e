#include <chrono>
#include <thread>

#include "client/command/verbs.h"
#include "client/output/progress_view.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

constexpr std::chrono::milliseconds kPollInterval{300};
constexpr absl::Duration kAwayLongest = absl::Minutes(10);
// An attempt has ended: how long its last lines are worth waiting for.
constexpr absl::Duration kHostAwayLongest = absl::Seconds(15);

v1::ReadLogRequest MakeRequest(const LogsOptions& options) {
  v1::ReadLogRequest request;
  request.set_id(options.job);
  request.set_rank(options.rank);
  request.set_attempt(options.attempt);
  request.set_stream(options.error_stream ? "stderr" : "stdout");
  return request;
}

// A rank's log keeps its newest part: whoever reads more slowly than it grows must know what is missing.
void NoteGap(const v1::ReadLogRequest& request, const v1::ReadLogReply& reply, Session& session) {
  int64_t gap = reply.next_offset() - static_cast<int64_t>(reply.data().size()) - request.offset();
  if (gap <= 0) return;
  session.out.flush();
  session.err << "--- " << gap << " bytes from byte " << request.offset()
              << " on are missing here: the log keeps only its newest part ---\n";
}

// Prints what there is from request.offset on and moves the offset. True when the rank will write no more.
absl::StatusOr<bool> PrintRest(v1::ReadLogRequest& request, Session& session) {
  while (true) {
    LLM_ASSIGN_OR_RETURN(v1::ReadLogReply reply, session.cluster.ReadLog(request));
    NoteGap(request, reply, session);
    session.out << reply.data();
    bool moved = reply.next_offset() > request.offset();
    request.set_offset(reply.next_offset());
    if (reply.end() || !moved) {
      session.out.flush();
      return reply.end();
    }
  }
}

// One attempt after the other until the job has ended, or the one that was asked for has.
class Follower {
 public:
  Follower(const LogsOptions& options, Session& session)
      : one_attempt_(options.attempt > 0), session_(session), request_(MakeRequest(options)) {}

  absl::StatusOr<ExitCode> Run() {
    heard_ = read_ = Now().monotonic;
    while (true) {
      absl::StatusOr<bool> finished = Round();
      if (finished.ok() && *finished) return ExitCode::kOk;
      if (finished.ok()) heard_ = Now().monotonic;
      // A coordinator or a host that is started again is waited for.
      bool may_pass = IsAway(finished.status()) && known_ && Now().monotonic - heard_ < kAwayLongest;
      if (!finished.ok() && !may_pass) return finished.status();
      std::this_thread::sleep_for(kPollInterval);
    }
  }

 private:
  // True when there is nothing left to follow.
  absl::StatusOr<bool> Round() {
    v1::GetJobRequest get;
    get.set_id(request_.id());
    LLM_ASSIGN_OR_RETURN(v1::Job job, session_.cluster.GetJob(get));
    known_ = true;
    // From here on by id: a newer job may take the name.
    request_.set_id(job.id());
    if (request_.attempt() == 0) request_.set_attempt(job.attempt());
    absl::StatusOr<bool> end = PrintRest(request_, session_);
    if (end.ok()) read_ = Now().monotonic;
    if (!one_attempt_ && job.attempt() > request_.attempt()) return LeaveAttempt(end);
    if (end.ok()) return *end && (one_attempt_ || HasEnded(job.phase()));
    // Before its first attempt a job has no log.
    bool may_come = absl::IsNotFound(end.status()) || absl::IsFailedPrecondition(end.status());
    if (may_come && !HasEnded(job.phase())) return false;
    return end.status();
  }

  // There is a newer attempt. None is passed over, and this one's last words are read first, unless its host is gone.
  bool LeaveAttempt(const absl::StatusOr<bool>& end) {
    bool ending = end.ok() && !*end;
    bool host_may_return = IsAway(end.status()) && Now().monotonic - read_ < kHostAwayLongest;
    if (ending || host_may_return) return false;
    session_.out.flush();
    if (!end.ok()) session_.err << "--- attempt " << request_.attempt() << ": " << end.status().message() << " ---\n";
    request_.set_attempt(request_.attempt() + 1);
    request_.set_offset(0);
    session_.err << "--- attempt " << request_.attempt() << " ---\n";
    return false;
  }

  static bool IsAway(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  }

  const bool one_attempt_;
  Session& session_;
  v1::ReadLogRequest request_;
  bool known_ = false;    // the job has been seen
  absl::Duration heard_;  // when a round went well
  absl::Duration read_;   // when the log was read
};

}  // namespace

absl::StatusOr<ExitCode> Logs(const LogsOptions& options, Session& session) {
  if (options.follow) return Follower(options, session).Run();
  v1::ReadLogRequest request = MakeRequest(options);
  LLM_RETURN_IF_ERROR(PrintRest(request, session).status());
  return ExitCode::kOk;
}

}  // namespace llmctl::client
