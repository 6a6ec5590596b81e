#include "absl/strings/str_cat.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "client/output/table.h"
#include "common/base/status.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Events(const std::string& job, Session& session) {
  v1::ListEventsRequest request;
  request.set_id(job);
  v1::ListEventsReply all;
  do {
    LLM_ASSIGN_OR_RETURN(v1::ListEventsReply page, session.cluster.ListEvents(request));
    all.mutable_events()->MergeFrom(page.events());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (session.PrintStructured(all)) return ExitCode::kOk;
  Table table({"TIME", "ATTEMPT", "KIND", "TEXT"});
  for (const v1::JobEvent& event : all.events()) {
    table.AddRow({FormatTime(event.time().seconds()), absl::StrCat(event.attempt()), event.kind(), event.text()});
  }
  session.out << table.ToText();
  return ExitCode::kOk;
}

}  // namespace llmctl::client
