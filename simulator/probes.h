// What a campaign must have reached: the faults that are put in, and the rare situations that they are to lead to.
// Each is counted; one that stays at zero means that a part of the world is not exercised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace llmctl::simulator {

enum class Probe {
  // ---- faults of the network ----
  kLinkCut,
  kPartition,
  kPartitionUp,
  kPartitionDown,
  kNetworkSlow,
  kNetworkRepeats,
  // ---- of disks ----
  kDiskFull,
  kDiskSlow,
  kAgentDiskFull,
  kDiskDiesInCommit,
  // ---- of processes ----
  kCoordinatorCrash,
  kCoordinatorCrashAfterCommit,
  kCoordinatorPause,
  kSecondCoordinator,
  kAgentCrash,
  kAgentCrashInStep,
  kAgentPause,
  kAgentReplacedBehindHello,
  kTrainerFailure,
  kTrainerPause,
  kTrainerWedged,
  kTrainerDeaf,
  kTrainerHang,
  kShimKilled,
  kStandbyKilled,
  kHostReboot,
  kHostWiped,
  kExitRecordLost,
  kTwoWorkersOneName,
  kHostUnfit,
  // ---- of clocks ----
  kClockJump,
  // ---- people ----
  kSubmit,
  kSubmitTwice,
  kCancel,
  kSuspend,
  kResume,
  kDelete,
  kCordon,
  kDrain,
  kUncordon,
  // ---- situations ----
  kAtTheWorstMoment,
  kClockDrift,
  kPartitionBeyondOrphanTimeout,
  kPowerLoss,
  kMessageLost,
  kMessageRepeated,
  kMessageOvertaken,
  kOldLinkOvertaken,
  kCommitFailed,
  kCommitSlow,
  kCommitRefusedByTerm,
  kWriteDropped,
  kWriteTorn,
  kCommitInDoubtKept,
  kCommitInDoubtLost,
  kRealStore,
  kCrashRehearsed,
  kCrashLosesSteps,
  kCoordinatorPauseBeyondLease,
  kAgentPauseBeyondLease,
  kSecondAgentRefused,
  kFenceNotWritten,
  kOutboxNotWritten,
  kLeaseExpired,
  kWorkerRefused,
  kAgentGaveUpLink,
  kShimAdopted,
  kShimKeptMessage,
  kExitWhileAgentAway,
  kRankHangs,
  kOrphansStopped,
  kTrainersYield,
  kLastCheckpointRefused,
  kPlanStale,
  kRendezvousLost,
  kStartBehindTime,
  kEvidenceCollected,
  kHangFalselySeen,
  kStartOnStandby,
  kStandbyAdopted,
  kStandbyEndedUnseen,
  kPreflightPassed,
  kPreflightFailed,
  kPreflightCutShort,
  kNodeQuarantined,
  kNodeInBurnIn,
  kNodeOnParole,
  kSubmitRepeated,
  kDeleteRefused,
  kNodeDrained,
  kJobFailed,
  kJobSucceeded,
};
inline constexpr size_t kProbes = static_cast<size_t>(Probe::kJobSucceeded) + 1;

enum class ProbeKind { kFault, kUser, kSituation };

const char* ProbeName(Probe probe);
ProbeKind KindOf(Probe probe);

using ProbeCounts = std::array<int64_t, kProbes>;

}  // namespace llmctl::simulator
