// The supervisor's state. Only `fences` and `outbox` are stored; the rest is learnt anew from the shims and
// the coordinator when an agent starts.
//
// Ordered containers throughout: their order reaches commands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

struct Rank {
  int device = 0;
  RankPhase phase = RankPhase::kStarting;
  int64_t pid = 0;
  std::optional<ExitRecord> exit;  // when phase is kExited
  bool shim_connected = false;
  // An earlier life's shim that has not yet said all it kept for us.
  bool catching_up = false;
  // Phase and pid that the coordinator was told on this link.
  std::optional<std::pair<RankPhase, int64_t>> told;
  // Store requests without an answer, by the trainer's request id.
  std::map<int64_t, contract::StoreRequest> unanswered;
};

// The ranks of one generation on this host.
struct Gang {
  absl::Duration orphan_timeout = absl::InfiniteDuration();
  std::map<int, Rank> ranks;
  // What was last asked of all ranks; a shim that connects later is asked too. A kill overrides a yield.
  std::optional<contract::Yield> yield;
  std::optional<contract::Kill> kill;
  std::string orphan_reason;  // why we stopped it though nobody asked
  // Why its ranks cannot go on although they may be well; empty: they can.
  std::string failure;
  bool evidence_wanted = false;  // and asked for
  // What this host's ranks have put into the store: a restarted coordinator has lost it.
  std::map<std::string, std::string> own_sets;
  // GangReleased was sent on this link; when this heartbeat is answered, the coordinator has all there was to
  // say about the gang.
  std::optional<int64_t> confirmed_by_heartbeat;
};

// A nonce that this host wrote for the others of a gang to find. It outlives the link it was asked for on: a host
// that does not find it has another disk, whatever the network does meanwhile.
struct WrittenProbe {
  std::string checkpoint_directory;
  std::string nonce;
  int64_t expiry = 0;  // its timer
};

inline constexpr int64_t kPreflightOfNobody = 0;  // less than any number that is ordered

// A trainer that waits for a job. No process of a generation: it has no device, no fence and no record.
struct Standby {
  enum class Phase {
    kStarting,  // its shim is not there yet
    kLoading,
    kReady,
  };
  Phase phase = Phase::kStarting;
  int64_t memory_bytes = 0;
};

struct Timer {
  enum class Purpose { kHeartbeat, kOrphan, kYieldDeadline, kCatchUp, kProbeExpiry, kStandby };
  Purpose purpose;
  GenerationId generation;
  int64_t link = 0;  // value of State::links when it was armed
};

struct State {
  // ---- stored ----
  // Per job, the highest generation that was started or stopped here: nothing up to it starts again.
  std::map<JobId, int64_t> fences;
  // Checkpoint commits without an answer, by generation and wire request id.
  std::map<std::pair<GenerationId, int64_t>, contract::CheckpointCommit> outbox;

  // ---- given at the start ----
  std::set<int> devices;
  int standbys_wanted = 0;

  // ---- volatile ----
  std::map<GenerationId, Gang> gangs;
  std::map<GenerationId, WrittenProbe> written_probes;
  std::map<int64_t, Standby> standbys;
  int64_t next_standby = 1;
  bool standby_due = false;   // a timer is armed that starts the next one
  int standby_failures = 0;   // in a row
  // The number that the one under way answers, or kPreflightOfNobody: it was ordered on an earlier link.
  std::optional<int64_t> preflight;
  bool dialled = false;
  bool welcomed = false;
  int64_t links = 0;  // counts changes of `welcomed`, so that timers of an earlier link are known as such
  absl::Duration heartbeat_interval = absl::Seconds(1);
  int64_t next_heartbeat = 1;
  std::map<int64_t, Timer> timers;
  int64_t next_timer = 1;
};

}  // namespace llmctl::agent
