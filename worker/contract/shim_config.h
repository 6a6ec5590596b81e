// What a shim is told, in <dir>/shim.json, and the names of the files in its directory.
//
//   shim.json        this configuration, by the agent
//   standby.json     in its place while the trainer has no job: what it was started with, by the agent
//   trainer.json     the trainer's (trainer_config.h), by the agent
//   lock             locked by the shim while it lives; whoever holds it may decide that there is none
//   socket           where agents connect
//   started.json     a `started` line, once the trainer runs
//   exit.json        an `exited` line, before it is sent: with it no trainer is started in this directory again
//   stdout.log, stderr.log            the newest part of what the trainer printed
//   stdout.<offset>.log, ...          the part before it, which begins at that byte of the stream
//   shim.log         the shim's own complaints
//   collectives.ring the trainer's last collectives, by the trainer (collective_ring.h)
//   phase.page       what the trainer is doing, by the trainer (phase_page.h)
//   picture.bin      the trainer's threads when something was wrong, by the shim (picture.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/contract/messages.h"

namespace llmctl::contract {

inline constexpr char kShimConfigFile[] = "shim.json";
inline constexpr char kStandbyConfigFile[] = "standby.json";
inline constexpr char kTrainerConfigFile[] = "trainer.json";
inline constexpr char kShimLockFile[] = "lock";
inline constexpr char kShimSocketFile[] = "socket";
inline constexpr char kStartedFile[] = "started.json";
inline constexpr char kExitFile[] = "exit.json";
inline constexpr char kShimLogFile[] = "shim.log";
inline constexpr char kCollectivesFile[] = "collectives.ring";
inline constexpr char kPhaseFile[] = "phase.page";
inline constexpr char kPictureFile[] = "picture.bin";

// The trainer finds its end of the link by this variable.
inline constexpr char kShimFdVariable[] = "LLMCTL_SHIM_FD";
// Set if the parent takes pictures of the trainer on SIGUSR1.
inline constexpr char kPicturesVariable[] = "LLMCTL_PICTURES";

struct ShimConfig {
  Assignment assignment;  // handed to the trainer first
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"; nothing else is inherited
  double orphan_timeout_seconds = 0;     // without an agent for so long, the trainer is stopped
  int64_t log_bytes_max = 0;             // per stream, on disk
};

std::string EncodeShimConfig(const ShimConfig& config);
// A shim refuses settings that it does not know. An agent that only wants to know what an earlier one started does not.
enum class UnknownSettings { kRefuse, kIgnore };
absl::StatusOr<ShimConfig> DecodeShimConfig(absl::string_view json,
                                            UnknownSettings unknown = UnknownSettings::kRefuse);

// A standby: a trainer that has loaded its program and waits for a job, so that a start need not. Its agent writes
// shim.json beside this file when there is one, gives the directory the rank's name, and says `take`.
struct StandbyConfig {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", while it waits; that of shim.json takes its place
  std::string trainer_digest;            // of argv[0]: a standby of another build is of no use
  double orphan_timeout_seconds = 0;     // without an agent for so long, it ends
  int64_t log_bytes_max = 0;
  bool operator==(const StandbyConfig&) const = default;
};

std::string EncodeStandbyConfig(const StandbyConfig& config);
absl::StatusOr<StandbyConfig> DecodeStandbyConfig(absl::string_view json);

}  // namespace llmctl::contract
