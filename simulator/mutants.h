// Faults of the program itself, put into the shells around the cores: the checkers must notice each. A campaign that
// lets one pass proves nothing about the real program.
#pragma once

#include <string>

namespace llmctl::simulator {

enum class Mutant {
  kNone,
  kNoFencing,               // an agent starts a generation that was started or stopped there before
  kSendBeforePersist,       // commands leave before their records are durable
  kLeaseFromSending,        // a lease counts from when its answer leaves, not from the heartbeat
  kLoseIdempotency,         // keys of submissions are dropped on the way in
  kFreeTwice,               // a device is freed once more a little after its release
  kReleaseTooEarly,         // a stop is answered before the processes have ended
  kApplyStalePlan,          // a plan made from an older state is applied as it is
  kStartHalfGang,           // the last host of a gang is not told to start
  kForgetCancel,            // a cancel is not stored
  kForgetCounters,          // attempt and generation are not stored
  kLeaveTerminal,           // an ended job can be suspended
  kAdoptOldGenerations,     // offers of fenced writers pass as the newest generation's
  kKeepBackoff,             // failures go on counting after a checkpoint
  kAdmitOldIncarnation,     // an older agent takes the place of a newer one
  kDropOutbox,              // an agent that starts does not read its outbox
  kCommitWithoutTerm,       // a coordinator commits though another has taken over
  kAdoptTwice,              // a second agent starts while the first stands still
  kConfirmTooEarly,         // heartbeats are answered before what came earlier is durable
  kHideShims,               // a Hello says nothing of the processes that a host still has
  kLoseJobRecords,          // now and then a job's record is not written
  kKeepRendezvous,          // keys outlive their generation
  // ---- faults that the program has had ----
  kLeaseRunsInCommit,       // a lease begins with the Hello, though its Welcome waits for the disk
  kRepeatStartToAnother,    // a start is repeated to another agent of the name
  kFreeReturned,            // a gang that has ended frees devices whose processes came back
};

// "no-fencing" and so on.
std::string MutantName(Mutant mutant);
bool ParseMutant(const std::string& name, Mutant* mutant);
// All of them, for a person.
std::string MutantNames();

}  // namespace llmctl::simulator
