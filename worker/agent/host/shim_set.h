// The shims of this host: started, found again, connected, cleaned up after.
//
// One directory per rank below <state-dir>/shims. What happens to a shim comes out as events of the supervisor
// (worker/agent/core/event.h); every rank's story ends in exactly one RankExited per life of the agent:
//
//   Spawn -> starting -> connected -> RankExited (the shim's own record); with a standby, connected at once
//   Find  ------------^     |
//                           +-> lost: the shim lives and is connected again, or has left a record, or was killed:
//                               then its trainer's processes are killed and a record is made in its place
//
// Whether a shim lives is decided by its lock file. Never blocks but on local files. Not thread-safe: the agent's
// main loop polls Descriptors() and calls Handle() and Tick().
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/base/unique_fd.h"
#include "worker/agent/core/command.h"
#include "worker/agent/core/event.h"
#include "worker/agent/host/allowed_roots.h"
#include "worker/agent/host/shim_process.h"
#include "worker/agent/host/standby_set.h"
#include "worker/contract/line_link.h"

namespace llmctl::agent {

class ShimSet {
 public:
  struct Options {
    std::string shims;  // directories of ranks that may have processes
    std::string ended;  // directories kept for their logs
    std::string shim_program;
    std::string trainer_program;
    std::vector<std::string> environment;  // of every trainer, "NAME=value"; a job's env overrides it
    AllowedRoots roots{""};
    int64_t log_bytes_max = 256 << 20;  // per stream
    size_t ended_max = 64;              // directories kept...
    int64_t ended_bytes_max = int64_t{4} << 30;  // ...of so much together, the newest in any case
  };
  ShimSet(Options options, std::function<void(Event)> sink);

  // Emits ShimFound for each rank left by an earlier agent, and connects. FailedPrecondition: one was left by a build
  // whose configuration this one cannot read.
  absl::Status FindAll(absl::Duration now);

  // In a process of its own, or as the standby that is handed over.
  void Spawn(const SpawnShim& command, std::optional<StandbySet::Taken> standby = std::nullopt);
  // A rank without a connection misses it: the supervisor or the shim repeats what matters.
  void Send(const SendToShim& command);
  void Retire(const RetireShim& command);

  std::vector<pollfd> Descriptors() const;
  void Handle(const pollfd& ready, absl::Duration now);
  // When Tick() is due, if ever.
  std::optional<absl::Duration> NextDeadline() const;
  void Tick(absl::Duration now);

  // Where the log of a rank is, live or ended. NotFound: nothing is kept of it.
  absl::StatusOr<std::string> LogDirectory(const GenerationId& generation, int rank) const;
  bool IsLive(const GenerationId& generation, int rank) const;
  // Ranks that have not been seen to end, and where their files are.
  struct LiveRank {
    GenerationId generation;
    int rank = 0;
    std::string directory;
  };
  std::vector<LiveRank> Live() const;
  // Ranks that are not retired, live or ended.
  std::vector<int> RanksOf(const GenerationId& generation) const;

 private:
  using Key = std::pair<GenerationId, int>;
  struct Shim {
    std::string directory;
    UniqueFd process;  // pidfd: of the starting shim, or of an abandoned trainer that is being killed
    pid_t starter = 0;  // not 0 while the shim is starting
    std::unique_ptr<contract::LineLink> link;
    std::optional<absl::Duration> retry_at;
    bool exited = false;
    // Speaks no version of the contract that we do: left alone until it has ended, but for a kill.
    bool foreign = false;
  };

  absl::Status CheckPaths(const SpawnShim& command) const;
  // Writes the configurations into `directory`, which will have the name `final_directory`.
  absl::Status Prepare(const SpawnShim& command, const std::string& directory,
                       const std::string& final_directory) const;
  absl::Status Launch(const SpawnShim& command, Shim& shim) const;
  absl::Status HandOver(const SpawnShim& command, StandbySet::Taken& standby, Shim& shim) const;
  void EndStart(const Key& key, Shim& shim, absl::Duration now);
  // Connects, or finds out why that is not possible.
  void Reach(const Key& key, Shim& shim, absl::Duration now);
  void LeaveAlone(const Key& key, Shim& shim, absl::Duration now, const absl::Status& why);
  void WatchForeign(const Key& key, Shim& shim, absl::Duration now);
  void ReadLink(const Key& key, Shim& shim, absl::Duration now);
  void BuryAbandoned(const Key& key, Shim& shim);
  void FinishBurial(const Key& key, Shim& shim);
  void Exit(const Key& key, Shim& shim, const contract::Exited& exited);
  void FailStart(const Key& key, const std::string& directory, const absl::Status& status);
  void TrimEnded() const;

  const Options options_;
  const std::function<void(Event)> sink_;
  std::map<Key, Shim> shims_;
};

// "<job>-a<attempt>-g<generation>-r<rank>"; InvalidArgument if the job's id is not fit for a file name.
absl::StatusOr<std::string> ShimDirectoryName(const GenerationId& generation, int rank);

}  // namespace llmctl::agent
