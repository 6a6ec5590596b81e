// Everything the supervisor can ask for, carried out in order.
//
// If PersistFences fails, the shell starts none of the step's shims and reports their ranks as exited
// (start_failed): a start that is not fenced on disk could happen twice.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

// State::fences and State::outbox as they are now, durable when the command returns. Of the fences that of `job` has
// changed.
struct PersistFences {
  JobId job;
};
struct PersistOutbox {};

// Starts a shim with its trainer, or makes the standby the rank's. ShimConnected or RankExited follows.
struct SpawnShim {
  GenerationId generation;
  int rank = 0;
  int64_t standby = 0;  // 0: none; one that has just ended is as good as none
  contract::Assignment assignment;
  JobStart start;
};
struct SendToShim {
  GenerationId generation;
  int rank = 0;
  contract::Message message;
};
// The rank is history: its directory is kept for its logs only, and not found again by the next agent.
struct RetireShim {
  GenerationId generation;
  int rank = 0;
};
// A gang has ended badly: what can be known of it goes into an archive. In the background; nothing waits for it.
struct CollectEvidence {
  GenerationId generation;
};

// A shim with a trainer that waits for a job. StandbyConnected or StandbyEnded follows.
struct StartStandby {
  int64_t number = 0;
};
struct EndStandby {
  int64_t number = 0;
};

// All shims of an earlier life have said how they are: dial, and keep dialling.
struct DialCoordinator {};
// On the live link; dropped if it has just broken.
struct SendToCoordinator {
  AgentMessage message;
};

// ProbeFinished follows.
struct RunProbe {
  ProbeOrdered probe;
};
struct RemoveProbe {
  std::string checkpoint_directory;
  std::string nonce;
};

// PreflightFinished follows.
struct RunPreflight {};
// Ranks come first: PreflightFinished follows at once. Nothing if none runs.
struct CancelPreflight {};

// TimerFired{timer} after `delay`.
struct ArmTimer {
  int64_t timer = 0;
  absl::Duration delay;
};

using Command = std::variant<PersistFences, PersistOutbox, SpawnShim, SendToShim, RetireShim, StartStandby, EndStandby,
                             DialCoordinator, SendToCoordinator, RunProbe, RemoveProbe, RunPreflight, CancelPreflight,
                             ArmTimer, CollectEvidence>;

}  // namespace llmctl::agent
