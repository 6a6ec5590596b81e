#include "client/command/job_reply.h"

#include "client/output/progress_view.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> PrintJobReply(const absl::StatusOr<v1::JobReply>& reply, Session& session) {
  if (!reply.ok()) return reply.status();
  const v1::Job& job = reply->job();
  if (session.PrintStructured(job)) return ExitCode::kOk;
  session.out << job.id() << " " << job.name() << " " << PhaseName(job.phase());
  if (!job.reason().empty()) session.out << ": " << job.reason();
  session.out << "\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
