#include "client/command/verbs.h"
#include "client/command/watching.h"
#include "client/output/progress_view.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Wait(const std::string& job, absl::Duration timeout, Session& session) {
  WatchCallbacks silent{[](const v1::Job&) {}, [](const std::string&) {}};
  absl::StatusOr<v1::Job> ended = WatchUntilEnded(session.cluster, job, timeout, silent);
  if (absl::IsDeadlineExceeded(ended.status())) {
    // The coordinator is fine; it is the job that takes longer.
    session.err << "llmctl: " << ended.status().message() << "\n";
    return ExitCode::kOther;
  }
  if (!ended.ok()) return ended.status();
  if (!session.PrintStructured(*ended)) {
    session.out << ended->id() << " " << ended->name() << " " << PhaseName(ended->phase());
    if (!ended->reason().empty()) session.out << ": " << ended->reason();
    session.out << "\n";
  }
  return ExitCodeOf(*ended);
}

}  // namespace llmctl::client
