#include "client/command/verbs.h"
#include "client/command/watching.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Follow(const std::string& job, Session& session) { return FollowJob(job, session); }

}  // namespace llmctl::client
