#include "client/local/readiness.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/local/daemon_commands.h"
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

constexpr int kTailLines = 20;
// A daemon that ended this often without the cluster coming up will not come up by waiting.
constexpr int kEndsMax = 3;

std::string TailOf(const ClusterDirectory& directory, const std::string& daemon) {
  std::string tail = LogTail(directory.log_file(daemon), kTailLines);
  return absl::StrCat("\n--- ", directory.log_file(daemon), " ---\n", tail.empty() ? "(empty)\n" : tail);
}

// Names of workers that the coordinator has not heard of since `state` began.
absl::StatusOr<std::vector<std::string>> MissingWorkers(Cluster& cluster, const LocalState& state) {
  LLM_ASSIGN_OR_RETURN(v1::ListNodesReply reply, cluster.ListNodes(v1::ListNodesRequest()));
  std::set<std::string> ready;
  for (const v1::Node& node : reply.nodes()) {
    // A coordinator that was restarted believes in the workers it knew: only news counts.
    if (node.state() == "ready" && node.last_seen().seconds() >= state.start_time) ready.insert(node.id());
  }
  std::vector<std::string> missing;
  for (int i = 0; i < state.workers; ++i) {
    if (ready.count(WorkerName(i)) == 0) missing.push_back(WorkerName(i));
  }
  return missing;
}

absl::Status FindCrashLoop(const ClusterDirectory& directory, const LocalState& state) {
  for (const DaemonState& daemon : state.daemons) {
    if (daemon.restarts < kEndsMax) continue;
    return absl::InternalError(absl::StrCat("bring up a local cluster: ", daemon.name, " ended ", daemon.restarts,
                                            " times (", daemon.last_end, "), expected it to stay",
                                            TailOf(directory, daemon.name)));
  }
  return absl::OkStatus();
}

absl::Status NotReady(const ClusterDirectory& directory, absl::Duration patience,
                      const std::vector<std::string>& missing) {
  return absl::InternalError(absl::StrCat("bring up a local cluster: expected ", absl::StrJoin(missing, ", "),
                                          " to be ready within ", absl::FormatDuration(patience), ", found not",
                                          TailOf(directory, missing[0])));
}

}  // namespace

std::unique_ptr<Cluster> ConnectLocal(const ClusterDirectory& directory, absl::Duration timeout) {
  std::string file = directory.coordinator_address_file();
  return MakeCluster({absl::StrCat("@", file), file}, timeout);
}

absl::StatusOr<LocalState> ReadLocalState(const ClusterDirectory& directory) {
  if (!IsLocked(directory.lock_file())) {
    return absl::NotFoundError(absl::StrCat("no local cluster is up in ", directory.path(),
                                            "; `llmctl local up` starts one, --dir names another folder"));
  }
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(directory.state_file()));
  absl::StatusOr<LocalState> state = DecodeLocalState(text);
  LLM_RETURN_IF_ERROR(Annotate(state.status(), directory.state_file()));
  return state;
}

absl::Status AwaitReady(const ClusterDirectory& directory, absl::Duration patience) {
  const absl::Duration deadline = Now().monotonic + patience;
  std::unique_ptr<Cluster> cluster = ConnectLocal(directory, absl::Milliseconds(200));
  std::vector<std::string> missing{"coordinator"};
  while (Now().monotonic < deadline) {
    if (!IsLocked(directory.lock_file())) {
      return absl::InternalError(absl::StrCat("bring up a local cluster: the supervisor ended",
                                              TailOf(directory, "supervisor")));
    }
    absl::StatusOr<LocalState> state = ReadLocalState(directory);
    if (state.ok()) {
      LLM_RETURN_IF_ERROR(FindCrashLoop(directory, *state));
      absl::StatusOr<std::vector<std::string>> workers = MissingWorkers(*cluster, *state);
      if (workers.ok() && workers->empty()) return absl::OkStatus();
      if (workers.ok()) missing = *workers;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return NotReady(directory, patience, missing);
}

}  // namespace llmctl::client
