// One llm-shim, by its directory: started, reached, found dead. What the shims of ranks (shim_set.h) and of standbys
// (standby_set.h) have in common.
//
// Never blocks but on local files. Thread-safe: no state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/unique_fd.h"
#include "worker/contract/line_link.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

struct StartingShim {
  pid_t pid = 0;
  UniqueFd process;  // pidfd: readable when the program has returned to its starter
};
absl::StatusOr<StartingShim> LaunchShim(const std::string& program, const std::string& directory);
// After its pidfd has become readable: OK when the shim listens, else what it said.
absl::Status EndLaunch(pid_t pid, const std::string& directory);

// Says hello.
absl::StatusOr<std::unique_ptr<contract::LineLink>> ConnectToShim(const std::string& directory);

// The lock of a directory whose shim is gone, so that none can start while we decide; invalid while one lives.
UniqueFd LockDeadShim(const std::string& directory);
// The kernel kills a trainer with its shim. Where it has not done so yet, or the trainer hangs in the kernel, its whole
// group is killed here; once the trainer is gone, nothing tells a group of its number from a stranger's, and what it
// had started itself (ours start nothing) is left alone. A pidfd that becomes readable when the trainer has ended;
// invalid if there is none any more.
UniqueFd KillAbandonedTrainer(const std::string& directory);
// A fenced generation must end even where its shim cannot be talked to. SIGTERM has a shim stop its trainer with the
// default grace; a killed shim takes its trainer along.
void KillForeignShim(const std::string& directory, double grace_seconds);
bool HasEnded(const UniqueFd& process);
// Field 22 of /proc/<pid>/stat: with it the pid names one process; 0 if there is none.
int64_t StartTicks(int64_t pid);

// The message of a record file, if it is there and whole.
template <typename T>
std::optional<T> ReadRecord(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<contract::Envelope> envelope = contract::DecodeLine(absl::StripSuffix(*text, "\n"));
  if (!envelope.ok()) return std::nullopt;
  const T* message = std::get_if<T>(&envelope->message);
  return message == nullptr ? std::nullopt : std::optional<T>(*message);
}

}  // namespace llmctl::agent
