// The supervisor of a local cluster: starts the daemons, restarts those that end, stops them in the end.
//
// It knows nothing of jobs: trainers belong to their shims and outlive agents, so a restart of anything here
// disturbs no training. A daemon that dies is restarted at once; one that keeps dying, after a growing pause.
// Daemons get SIGTERM from the kernel if the supervisor itself is killed, so none is ever left without one.
// Single-threaded; must run in a process without other threads (it forks, and waits for all signals).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "client/local/cluster_directory.h"
#include "client/local/local_state.h"

namespace llmctl::client {

struct DaemonCommand {
  std::string name;
  std::vector<std::string> arguments;  // the first is the program's path
  std::string log_file;                // appended to
};

// How long a daemon rests that has ended `quick_ends` times in a row soon after its start.
absl::Duration RestartPause(int quick_ends);

class Supervisor {
 public:
  // `state` says all but the daemons. A daemon that takes longer than `stop_patience` to stop is killed.
  Supervisor(const ClusterDirectory& directory, LocalState state, std::vector<DaemonCommand> commands,
             absl::Duration stop_patience = absl::Seconds(5));
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Until SIGTERM or SIGINT; then stops the daemons, the last of `commands` first.
  absl::Status Run();

 private:
  struct Daemon {
    DaemonCommand command;
    pid_t pid = 0;
    int restarts = 0;
    int quick_ends = 0;
    std::string last_end;
    absl::Duration started;   // monotonic
    absl::Duration start_at;  // while pid is 0
  };

  absl::Status StartDue();
  void Reap();
  void StopAll();
  bool AwaitEnd(const Daemon& daemon, absl::Duration patience);
  absl::Duration UntilNextStart() const;
  absl::Status WriteState() const;

  const ClusterDirectory directory_;
  const LocalState about_;
  const absl::Duration stop_patience_;
  std::vector<Daemon> daemons_;
};

}  // namespace llmctl::client
