#include "client/command/verbs.h"
#include "common/base/status.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Delete(const std::string& job, Session& session) {
  v1::DeleteJobRequest request;
  request.set_id(job);
  LLM_ASSIGN_OR_RETURN(v1::DeleteJobReply reply, session.cluster.Delete(request));
  if (!session.PrintStructured(reply)) session.out << job << " deleted; its checkpoints stay on disk\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
