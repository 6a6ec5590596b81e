// What an agent keeps on disk, below --state-dir:
//
//   lock          held while an agent lives: one agent per directory
//   incarnation   how often an agent was started here
//   fences        per line: job, highest generation started or stopped; of several lines of a job the last counts
//   outbox        per line: job, attempt, generation, the `checkpoint_commit` line (contract) with its wire id
//   shims/        a directory per rank that may have a process (worker/contract/shim_config.h)
//   standby/      a directory per trainer that waits for a job
//   ended/        the same, kept only for their logs
//   evidence/     an archive per gang that ended badly (worker/agent/evidence/bundle.h)
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/unique_fd.h"
#include "worker/agent/core/state.h"

namespace llmctl::agent {

class StateDir {
 public:
  // Creates what is missing. FailedPrecondition: another agent has it.
  static absl::StatusOr<StateDir> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string shims() const { return path_ + "/shims"; }
  std::string standbys() const { return path_ + "/standby"; }
  std::string ended() const { return path_ + "/ended"; }
  std::string evidence() const { return path_ + "/evidence"; }

  // One more than last time, durable before it returns.
  absl::StatusOr<int64_t> NextIncarnation();
  // Fills in fences and outbox.
  absl::Status Load(State& state) const;
  // All of them at first, to leave out what later lines have made void; from then on that of `job` is added, since a
  // start waits for it and there is one for each job that was ever here.
  absl::Status PersistFences(const State& state, const JobId& job);
  absl::Status PersistOutbox(const State& state) const;

 private:
  StateDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
  UniqueFd fences_;  // to be added to; invalid: the file is to be written anew
};

}  // namespace llmctl::agent
