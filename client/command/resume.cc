#include "client/command/job_reply.h"
#include "client/command/verbs.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Resume(const std::string& job, Session& session) {
  v1::ResumeJobRequest request;
  request.set_id(job);
  return PrintJobReply(session.cluster.Resume(request), session);
}

}  // namespace llmctl::client
