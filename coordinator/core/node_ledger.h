// The ledger of a node: what speaks against it, and when it may train.
//
//   Trusted --strikes--> Quarantined --nothing runs there--> BurnIn --rounds passed--> Parole --a day--> Trusted
//                            ^                                 |                         |
//                            +------------ a round failed -----+    one serious strike --+
//
// A node that breaks jobs now and then is the dearest kind of fault: every restart goes back to it. So each failure
// that may be the node's doing is a strike with a weight; the sum halves with every half-life, and at the limit the
// node takes no more ranks. It earns its way back by its own pre-flight, run again and again; each further quarantine
// asks for twice as many rounds.
//
// The ledger suspects nodes, so it must not be led astray by jobs: a job that has struck other nodes already accuses
// with half the weight for each of them, and never is more than a part of the cluster in quarantine, for a rule that
// finds most nodes unfit is wrong about the nodes.
//
// A pre-flight is never in a job's way: it is ordered when a host has been idle for a while after its registration, or
// is in burn-in, and whatever starts there cuts it short. Decay, parole and the waits between burn-ins go by wall time,
// as they span restarts of the coordinator; a clock that jumps can only forgive or hold a grudge.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

#include "coordinator/core/turn.h"

namespace llmctl::core {

inline constexpr absl::Duration kStrikeHalfLife = absl::Hours(24);
// Three strikes within a day or so reach it; a node that is struck once a month stays far below.
inline constexpr double kStrikesTolerated = 2.5;
inline constexpr size_t kStrikesKept = 20;

// Weights of what the core sees for itself; failures of jobs carry the weight of their rule.
inline constexpr double kStrikeLinkLost = 0.1;  // the lease ran out and the same boot came back
inline constexpr double kStrikeRebooted = 1;    // another boot came back without the node having been drained
inline constexpr double kStrikeUnfit = 3;       // its pre-flight failed
inline constexpr double kStrikeHung = 0.5;      // a gang waited for a rank there: the host's doing, or the program's
inline constexpr double kStrikeSerious = 0.5;   // ends a parole; asks for a pre-flight

inline constexpr int kBurnInRoundsFirst = 3;
inline constexpr int kBurnInRoundsMost = 24;
inline constexpr absl::Duration kBurnInRetryFirst = absl::Minutes(10);
inline constexpr absl::Duration kBurnInRetryMost = absl::Hours(6);
inline constexpr absl::Duration kParolePeriod = absl::Hours(24);
// Hosts that get work at once are tested when that is done.
inline constexpr absl::Duration kPreflightIdle = absl::Seconds(5);
// Of all known nodes, one in so many may be in quarantine at a time (at least one, if there are two).
inline constexpr int kQuarantineShare = 4;

// The decayed sum.
double StrikesOf(const NodeStanding& standing, absl::Time now);

// `strike.time` is set here. A node that is not known is nobody's concern.
void StrikeNode(Turn& turn, const NodeId& node, Strike strike);
// An operator takes the place of the burn-in.
void Pardon(Turn& turn, Node& node);

// A Hello has been taken in; `before` is the node as it was known.
void RegisterNode(Turn& turn, Node& node, const std::optional<Node>& before);
void OnPreflightFinished(Turn& turn, const PreflightFinished& event);
void OnPreflightTimer(Turn& turn, const NodeId& node);
void EndParole(Turn& turn, const NodeId& node);
// After a start of the coordinator: a parole or a wait for the next burn-in goes on where it was.
void ResumeWaits(Turn& turn, const Node& node);
// The host has no link: nobody will hear how its pre-flight went.
void ForgetPreflight(Turn& turn, const NodeId& node);

// It is to be tested, now or later.
bool AwaitsPreflight(const NodeStanding& standing);
// Begins the burn-in or pre-flight that has become possible.
void SettleLedger(Turn& turn, Node& node);

}  // namespace llmctl::core
