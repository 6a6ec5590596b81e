#include "client/command/job_reply.h"
#include "client/command/verbs.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Suspend(const std::string& job, Session& session) {
  v1::SuspendJobRequest request;
  request.set_id(job);
  return PrintJobReply(session.cluster.Suspend(request), session);
}

}  // namespace llmctl::client
