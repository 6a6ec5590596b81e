#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "client/output/table.h"
#include "common/base/status.h"
#include "llmctl/v1/admin.pb.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> AdminQuarantine(Session& session) {
  LLM_ASSIGN_OR_RETURN(v1::ListQuarantineReply reply, session.cluster.ListQuarantine());
  if (session.PrintStructured(reply)) return ExitCode::kOk;
  if (reply.entities().empty()) {
    session.out << "nothing is in quarantine\n";
    return ExitCode::kOk;
  }
  Table table({"ENTITY", "CRASHES", "LAST", "WHY"});
  for (const v1::Quarantined& entity : reply.entities()) {
    table.AddRow({entity.entity(), absl::StrCat(entity.crashes()),
                  entity.has_last_crash() ? FormatTime(entity.last_crash().seconds()) : "", entity.reason()});
  }
  session.out << table.ToText();
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> AdminRelease(const std::string& entity, Session& session) {
  v1::ReleaseQuarantineRequest request;
  request.set_entity(entity);
  LLM_RETURN_IF_ERROR(session.cluster.ReleaseQuarantine(request));
  session.out << entity << ": its crashes are forgotten";
  absl::string_view job = entity;
  if (absl::ConsumePrefix(&job, "job ")) {
    session.out << "; `llmctl resume " << job << "` lets it go on, after the coordinator's next start if its record is "
                << "kept";
  }
  session.out << "\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
