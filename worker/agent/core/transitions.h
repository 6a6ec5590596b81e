// The pieces that Step() dispatches to, a file per concern. Internal to worker/agent/core.
#pragma once

#include <vector>

#include "absl/time/time.h"

#include "worker/agent/core/command.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/state.h"

namespace llmctl::agent {

using Commands = std::vector<Command>;

// ---- link.cc: what the coordinator is told, and when ---------------------------------------------------------
void DialWhenCaughtUp(State& state, Commands& out);
void SendHello(State& state, Commands& out);
void BeginLink(State& state, const CoordinatorWelcomed& event, Commands& out);
// No way to the coordinator from now on; starts the orphan timers.
void EndLink(State& state, Commands& out);
void SendHeartbeat(State& state, Commands& out);
void ConfirmTold(State& state, const HeartbeatAnswered& event, Commands& out);
// Tells the coordinator what it does not know yet of a gang; nothing while it is away.
void TellGang(State& state, const GenerationId& id, Commands& out);
// Returns the timer's number.
int64_t Arm(State& state, Timer timer, absl::Duration delay, Commands& out);

// ---- gang.cc: starting and stopping ---------------------------------------------------------------------------
void StartGang(State& state, const StartOrdered& order, Commands& out);
void StopGang(State& state, const StopOrdered& order, Commands& out);
void KillGang(Gang& gang, const GenerationId& id, absl::Duration grace, Commands& out);
void StopOrphans(State& state, const GenerationId& id, Commands& out);
void EndYield(State& state, const GenerationId& id, Commands& out);
void RemoveWrittenProbe(State& state, const GenerationId& id, Commands& out);
void AskForCheckpoint(State& state, const CheckpointOrdered& order, Commands& out);
void AdoptShim(State& state, const ShimFound& event);
void GreetShim(State& state, const ShimConnected& event, Commands& out);
void LoseShimLink(State& state, const ShimDisconnected& event);
void EndRank(State& state, const RankExited& event, Commands& out);
Rank* FindRank(State& state, const GenerationId& id, int rank);

// ---- standby.cc: trainers that wait for a job -------------------------------------------------------------------
// Sees to it that missing ones are started, when the host has nothing more urgent to do.
void KeepStandbys(State& state, Commands& out);
void StartDueStandby(State& state, Commands& out);
void AdmitStandby(State& state, const StandbyConnected& event, Commands& out);
void MarkStandbyReady(State& state, const StandbyReady& event, Commands& out);
void LoseStandby(State& state, const StandbyEnded& event, Commands& out);
// The one that is to become a rank of this start; 0: none, or none that could.
int64_t TakeStandby(State& state, const JobStart& start);
Heartbeat DescribeStandbys(const State& state);

// ---- preflight.cc: the test of the host ------------------------------------------------------------------------
void BeginPreflight(State& state, const PreflightOrdered& order, Commands& out);
void EndPreflight(State& state, const PreflightFinished& event, Commands& out);

// ---- trainer_messages.cc: requests of trainers and their answers ------------------------------------------------
void HandleShimMessage(State& state, const ShimMessage& event, Commands& out);
void PassStoreReply(State& state, const StoreAnswered& event, Commands& out);
void PassCommitReply(State& state, const CommitAnswered& event, Commands& out);
// After a Welcome: own keys, unanswered store requests, the outbox.
void SendUnansweredAgain(State& state, Commands& out);

}  // namespace llmctl::agent
