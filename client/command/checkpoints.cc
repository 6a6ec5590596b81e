#include "absl/strings/str_cat.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "client/output/table.h"
#include "common/base/status.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Checkpoints(const std::string& job, Session& session) {
  v1::ListCheckpointsRequest request;
  request.set_id(job);
  LLM_ASSIGN_OR_RETURN(v1::ListCheckpointsReply reply, session.cluster.ListCheckpoints(request));
  if (session.PrintStructured(reply)) return ExitCode::kOk;
  Table table({"STEP", "ATTEMPT", "COMMITTED", "PATH"});
  for (const v1::CommittedCheckpointView& checkpoint : reply.checkpoints()) {
    table.AddRow({absl::StrCat(checkpoint.step()), absl::StrCat(checkpoint.attempt()),
                  FormatTime(checkpoint.commit_time().seconds()), checkpoint.path()});
  }
  session.out << table.ToText();
  return ExitCode::kOk;
}

}  // namespace llmctl::client
