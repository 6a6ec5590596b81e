// How verbs that change a job answer.
#pragma once

#include "absl/status/statusor.h"

#include "client/command/exit_code.h"
#include "client/command/session.h"

namespace llmctl::client {

// The job as the change left it: structured, or "j-17 quickstart stopping: cancelled by ..." in a line.
absl::StatusOr<ExitCode> PrintJobReply(const absl::StatusOr<v1::JobReply>& reply, Session& session);

}  // namespace llmctl::client
