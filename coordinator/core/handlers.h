// The handlers of events that are not about a gang's life (those are in gang.h); one file per noun.
#pragma once

#include <string>

#include "coordinator/core/turn.h"

namespace llmctl::core {

// submission.cc
void OnJobSubmitted(Turn& turn, const JobSubmitted& event);
void OnJobDeleted(Turn& turn, const JobDeleted& event);
std::string KeyOf(const Job& job);

// user_requests.cc
void OnJobCancelled(Turn& turn, const JobCancelled& event);
void OnJobSuspended(Turn& turn, const JobSuspended& event);
void OnJobResumed(Turn& turn, const JobResumed& event);

// worker_link.cc
void OnWorkerConnected(Turn& turn, const WorkerConnected& event);
void OnWorkerLost(Turn& turn, const WorkerLost& event);
// The host is without a lease: its gangs go on elsewhere.
void LoseHost(Turn& turn, const NodeId& node, const std::string& reason);

// node_service.cc
void OnNodeCordoned(Turn& turn, const NodeCordoned& event);
void OnNodeUncordoned(Turn& turn, const NodeUncordoned& event);
void OnNodeDrainStarted(Turn& turn, const NodeDrainStarted& event);
void OnDrainTimer(Turn& turn, const NodeId& node);
// No process is left there, in the host's own words: of one without a link nothing is known.
bool IsEmpty(const State& state, const NodeId& node);
// What a step may have made true of the nodes in State::unsettled.
void SettleNodes(Turn& turn);
// Whether it is to be looked at after every step.
bool IsUnsettled(const Node& node);

// rank_reports.cc
void OnRankChanged(Turn& turn, const RankChanged& event);

// progress_findings.cc
void OnJobHung(Turn& turn, const JobHung& event);
void OnStragglerSeen(Turn& turn, const StragglerSeen& event);

// checkpoint_commit.cc
void OnCheckpointOffered(Turn& turn, const CheckpointOffered& event);

// plan.cc
void OnPlanReady(Turn& turn, const PlanReady& event);

// timers.cc
void OnTimerFired(Turn& turn, const TimerFired& event);

// startup.cc
void OnCoordinatorStarted(Turn& turn, const CoordinatorStarted& event);

}  // namespace llmctl::core
