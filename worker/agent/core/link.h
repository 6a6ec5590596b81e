// What an agent tells the coordinator, free of protobuf: the supervisor decides in these terms, worker/agent/rpc
// puts them on the wire (proto/llmctl/v1/worker_link.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "worker/contract/messages.h"
#include "worker/contract/preflight.h"

namespace llmctl::agent {

enum class RankPhase {
  kStarting,  // a process runs or is about to; its group is not formed
  kRunning,   // the trainer said ready
  kExited,
};

// How a rank ended; one of three: it exited, a signal killed it, or it never ran (start_failed).
struct ExitRecord {
  int exit_code = 0;
  int signal = 0;
  std::string fatal_class;  // the trainer's words, or ours if it never ran ("config", "infrastructure", ...)
  std::string fatal_message;
  bool stopped_by_agent = false;
  bool start_failed = false;
  std::string log_tail;
  std::string kernel_log;  // what the kernel said about the process and the hardware
  bool operator==(const ExitRecord&) const = default;
};

struct RunningShim {
  GenerationId generation;
  int rank = 0;
  int device = 0;
  int64_t pid = 0;
  RankPhase phase = RankPhase::kStarting;
  std::optional<ExitRecord> exit;
};

// The part of Hello that the supervisor knows; identity and devices are the shell's.
struct Hello {
  std::vector<RunningShim> shims;
};
struct Heartbeat {
  int64_t sequence = 0;
  int standbys_ready = 0;
  int64_t standby_memory_bytes = 0;
};
struct ProbeResult {
  GenerationId generation;
  bool ok = false;
  std::string error;
  std::string dataset_digest;
  std::string nonce;  // of the probe that is answered
  bool infrastructure = false;  // not passed because of this host or the file system, not of what the job asks for
};
struct PreflightResult {
  int64_t number = 0;  // of the newest order
  bool interrupted = false;
  contract::Preflight found;
};
struct RankUpdate {
  GenerationId generation;
  int rank = 0;
  RankPhase phase = RankPhase::kStarting;
  int64_t pid = 0;
  std::optional<ExitRecord> exit;
};
// No process of the generation is left on this host: its devices may be used again.
struct GangReleased {
  GenerationId generation;
};
struct ProgressReport {
  GenerationId generation;
  int rank = 0;
  contract::Progress progress;
};
// `request.request_id` is a wire id (see WireRequestId); 0: nobody waits for the answer.
struct StoreCall {
  GenerationId generation;
  contract::StoreRequest request;
};
// `commit.request_id` is a wire id.
struct CommitOffer {
  GenerationId generation;
  contract::CheckpointCommit commit;
};

using AgentMessage = std::variant<Hello, Heartbeat, ProbeResult, PreflightResult, RankUpdate, GangReleased,
                                  ProgressReport, StoreCall, CommitOffer>;

// Trainers number their requests each for itself; on the wire one number must also name the rank. The mapping
// is pure, so an answer finds its rank even if the agent was restarted in between.
inline constexpr int64_t kRequestIdLimit = int64_t{1} << 40;
inline int64_t WireRequestId(int rank, int64_t request_id) { return rank * kRequestIdLimit + request_id; }
inline int RankOfRequest(int64_t wire_id) { return static_cast<int>(wire_id / kRequestIdLimit); }
inline int64_t TrainerRequestId(int64_t wire_id) { return wire_id % kRequestIdLimit; }

}  // namespace llmctl::agent
