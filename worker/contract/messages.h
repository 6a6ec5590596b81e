// What agent, shim and trainer say to each other.
//
//   agent  <-- unix socket (one per shim, by name) -->  shim  <-- socketpair (fd in LLMCTL_SHIM_FD) -->  trainer
//
// One JSON object a line, at most kLineBytesMax, numbered in each direction ("seq"). The first line in each
// direction is `hello` with the version. The shim passes lines between agent and trainer and keeps what the
// agent must not miss while it is away; it adds `started` and `exited` of its own.
//
// A trainer is never blocked by its observers: its writes do not wait, progress drops the oldest, all else is
// never dropped. Unknown message types and fields are ignored (a newer peer may send them); a known message
// with a missing or mistyped field is an error of the peer and closes the link.
//
// No protobuf, no torch here: the trainer cannot link the one and the agent must not link the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/base/ids.h"

namespace llmctl::contract {

// A shim outlives the agent that started it, so agents of a newer build meet it. Versions are raised by a change that
// an older side would misread; what may change without one is in docs/compatibility.md.
inline constexpr int kVersion = 1;
inline constexpr int kOldestVersion = 1;
inline constexpr size_t kLineBytesMax = 64 * 1024;

// ---- both ways -----------------------------------------------------------------------------------------

// First line of each side: who speaks ("agent", "shim", "trainer") and for which rank.
struct Hello {
  int version = kVersion;
  std::string role;
  GenerationId generation;
  int rank = 0;
  std::optional<int> oldest_version;  // absent: it speaks none but `version`
};

// ---- towards the trainer ---------------------------------------------------------------------------------

struct RankAddress {
  int rank = 0;
  std::string node;
  std::string fabric_address;  // host or address that other ranks can reach
};

// Which rank of which world this process is. Sent first; a second one (same attempt, higher generation)
// replaces the group while process and memory stay.
struct Assignment {
  GenerationId generation;
  int rank = 0;
  int world_size = 0;
  int device = 0;
  std::vector<RankAddress> rank_table;
};

struct StoreReply {
  int64_t request_id = 0;
  bool found = false;
  std::string value;  // bytes; base64 on the wire
  int64_t number = 0;
  std::string error;  // empty: fine
};

// Save a checkpoint at the next step boundary.
struct CheckpointRequest {};

struct CheckpointCommitReply {
  int64_t request_id = 0;
  bool committed = false;
  std::string error;
  std::vector<std::string> removable_paths;
};

// Save a checkpoint, then exit with kExitYielded; SIGTERM follows after `deadline_seconds`.
struct Yield {
  std::string reason;
  double deadline_seconds = 0;
};

// Changed settings that need no restart, as a JSON object of TrainerConfig fields. Unknown ones are refused
// with `update_result`.
struct Update {
  std::string settings_json;
};

// Exit now, without a checkpoint.
struct Stop {
  std::string reason;
};

// ---- from the trainer ------------------------------------------------------------------------------------

// The group is formed and the state loaded: the first step comes next.
struct Ready {
  int64_t step = 0;  // steps done so far
};

struct Progress {
  int64_t step = 0;
  int64_t steps = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  int64_t tokens = 0;
  double step_seconds = 0;
  std::optional<double> validation_loss;
  int64_t validation_step = 0;
};

enum class StoreOperation { kGet, kSet, kWait, kAdd, kCompareSet, kDelete };

struct StoreRequest {
  int64_t request_id = 0;
  StoreOperation operation = StoreOperation::kGet;
  std::string key;
  std::string value;     // set; desired of compare-set. Bytes; base64 on the wire
  std::string expected;  // compare-set
  int64_t amount = 0;    // add
};

struct CheckpointCommit {
  int64_t request_id = 0;
  int64_t step = 0;
  std::string path;
  std::string manifest_digest;
  int64_t next_sample = 0;
};

struct UpdateResult {
  std::string error;  // empty: applied
};

// Last words: why this process is about to exit, in exit_codes.h terms ("config", "user", "oom",
// "infrastructure", "orphaned", "internal").
struct Fatal {
  std::string failure_class;
  std::string message;
};

// A standby: the program is loaded, and nothing is asked of it yet.
struct Waiting {};

// ---- from the shim ---------------------------------------------------------------------------------------

// `start_ticks` is field 22 of /proc/<pid>/stat: with it the pid names this process even if it is used again.
struct Started {
  int64_t pid = 0;
  int64_t start_ticks = 0;
};

// waitpid's answer, persisted before it is sent; kept until the agent acknowledges.
struct Exited {
  int exit_code = 0;
  int signal = 0;
  bool stopped_by_agent = false;
  bool start_failed = false;
  std::string error;  // why no process could be started
  std::string fatal_class;
  std::string fatal_message;
};

// All that was kept for an absent agent (started, ready, newest progress, requests without an answer, exited)
// has been sent: follows the hello on every new connection of an agent.
struct CaughtUp {};

// ---- agent to shim ---------------------------------------------------------------------------------------

// SIGTERM, then SIGKILL after the grace; 0 kills at once. Reaches the trainer's whole process group.
struct Kill {
  double grace_seconds = 0;
};

// The gang is about to be ended for a failure, or seems to hang: the shim takes a picture of the trainer (picture.h)
// before it does anything that comes after this message.
struct TakePicture {
  std::string reason;
};

// The exit record has been taken over: the shim may remove its files and end.
struct Release {};

// To the shim of a standby: it is a rank's from now on, the one that shim.json in its directory names. Said to any
// other shim it changes nothing, so it may be repeated.
struct Take {};

using Message = std::variant<Hello, Assignment, StoreReply, CheckpointRequest, CheckpointCommitReply, Yield, Update,
                             Stop, Ready, Progress, StoreRequest, CheckpointCommit, UpdateResult, Fatal, Started,
                             Exited, CaughtUp, Kill, Release, Waiting, Take, TakePicture>;

struct Envelope {
  int64_t seq = 0;
  Message message;
};

// OK if both sides speak a common version; FailedPrecondition names the versions of both.
absl::Status CheckVersion(const Hello& theirs);

// The name of the type on the wire ("checkpoint_commit"), for messages to people.
absl::string_view MessageName(const Message& message);

// One line without its newline. InvalidArgument when it could be longer than kLineBytesMax, whatever its number (a
// store value or a message text is too long).
absl::StatusOr<std::string> EncodeLine(const Envelope& envelope);

// The reverse. InvalidArgument names the message and field at fault; Unimplemented for a message type this
// version does not know (to be ignored).
absl::StatusOr<Envelope> DecodeLine(absl::string_view line);

}  // namespace llmctl::contract
