// Watching a job until it has ended, through lost connections and restarts of the coordinator.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/cluster/cluster.h"
#include "client/command/exit_code.h"
#include "client/command/session.h"

namespace llmctl::client {

struct WatchCallbacks {
  std::function<void(const v1::Job&)> on_job;
  std::function<void(const std::string&)> on_note;  // the connection was lost, or is back
};

// The ended job. Goes on from the last revision seen when a stream breaks. DeadlineExceeded when the job has not
// ended after `timeout`; the last error when no coordinator was there for ten minutes.
absl::StatusOr<v1::Job> WatchUntilEnded(Cluster& cluster, const std::string& job, absl::Duration timeout,
                                        const WatchCallbacks& callbacks);

// Shows the progress of a job until it has ended, then how it ended. Ctrl-C leaves the job alone.
absl::StatusOr<ExitCode> FollowJob(const std::string& job, Session& session);

}  // namespace llmctl::client
