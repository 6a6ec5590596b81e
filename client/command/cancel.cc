#include "client/command/job_reply.h"
#include "client/command/verbs.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Cancel(const std::string& job, const std::string& reason, Session& session) {
  v1::CancelJobRequest request;
  request.set_id(job);
  request.set_reason(reason);
  return PrintJobReply(session.cluster.Cancel(request), session);
}

}  // namespace llmctl::client
