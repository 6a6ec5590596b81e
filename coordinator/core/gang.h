// A gang: the ranks of a job's newest attempt, and the devices they hold.
//
//   BeginGang   devices owned, hosts checked      (Starting; no process anywhere)
//   StartRanks  once every check has passed       (Starting; hosts may have processes until they release)
//   MarkRunning when all ranks are ready          (Running)
//   StopGang    on request or after a failure     (Stopping)
//   ConcludeGang when no host is waited for       (the job goes on to its next phase)
//
// Invariant: a device of a gang is owned by its generation from BeginGang until its host has released it, or
// until the gang ends without ever having asked the host for a process.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "coordinator/core/turn.h"

namespace llmctl::core {

// Attempts of a job whose hosts are remembered, so that their logs can be read.
inline constexpr size_t kPastAttemptsMost = 20;

GenerationId CurrentGeneration(const Job& job);
// The job whose live gang is of this generation, or null.
Job* FindLiveGang(State& state, const GenerationId& generation);
// Hosts of an attempt in the order of their first rank.
std::vector<NodeId> HostsOf(const Attempt& attempt);
bool MayHaveProcesses(const Attempt& attempt, const NodeId& node);

// ---- gang_start.cc -----------------------------------------------------------------------------------------
void BeginGang(Turn& turn, Job& job, const std::vector<Slot>& slots);
// Repeats what a host must know that has a new link and no process of the gang: its check, or the start.
void RepeatStart(Turn& turn, const Job& job, const NodeId& node);
void OnProbeAnswered(Turn& turn, const ProbeAnswered& event);
void MarkRunningIfReady(Turn& turn, Job& job);
void ArmTimeLimit(Turn& turn, const Job& job);

// ---- gang_stop.cc ------------------------------------------------------------------------------------------
// Nothing failed: the ranks are asked to end.
void StopGang(Turn& turn, Job& job, StopRequest request);
// Something other than a rank ended the gang. `node`: on whose account.
void FailGang(Turn& turn, Job& job, Diagnosis diagnosis, std::string text, NodeId node = NodeId());
// A rank ended the gang.
void StopAfterRankFailure(Turn& turn, Job& job);
// Sends the host (again) what the stop of the gang asks of it.
void SendStop(Turn& turn, const Job& job, const NodeId& node);
// The host has no process of the gang any more.
void ReleaseHost(Turn& turn, Job& job, const NodeId& node);
void OnGangReleased(Turn& turn, const GangReleased& event);
void ConcludeIfReleased(Turn& turn, Job& job);
void OnStopTimer(Turn& turn, Job& job, int round);
void ArmStopTimer(Turn& turn, const Job& job, absl::Duration extra);

// ---- gang_end.cc -------------------------------------------------------------------------------------------
bool AllRanksSucceeded(const Attempt& attempt);
// The gang is over: success, an end on request, or what the restart policy says.
void ConcludeGang(Turn& turn, Job& job);
// Adds the time since the last call to the job's run time.
void AccountRunTime(Turn& turn, Job& job);

}  // namespace llmctl::core
