// The coordinator has started on records that another life of it wrote.
//
// Training went on meanwhile, so nothing is decided until the hosts have spoken or the grace is over: gangs keep
// their phases, every wait begins anew.
#include "absl/time/time.h"

#include "coordinator/core/deadlines.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/step.h"

namespace llmctl::core {
namespace {

void ArmFor(Turn& turn, const Job& job, absl::Duration grace) {
  switch (job.phase) {
    case JobPhase::kBackoff:
      turn.Arm({Timer::Purpose::kBackoff, job.id, job.last_generation}, job.backoff);
      return;
    case JobPhase::kStarting:
      if (job.attempt->ranks_requested) {
        turn.Arm({Timer::Purpose::kStart, job.id, job.last_generation}, kStartDeadline + grace);
      } else {
        turn.Arm({Timer::Purpose::kProbe, job.id, job.last_generation}, kProbeDeadline + grace);
      }
      return;
    case JobPhase::kRunning:
      turn.state.run_time_since[job.id] = turn.now.monotonic;
      ArmTimeLimit(turn, job);
      return;
    case JobPhase::kStopping: ArmStopTimer(turn, job, grace); return;
    case JobPhase::kQueued:
    case JobPhase::kSuspended:
    case JobPhase::kSucceeded:
    case JobPhase::kFailed:
    case JobPhase::kCancelled: return;
  }
}

void ArmFor(Turn& turn, const Node& node, absl::Duration grace) {
  if (node.standing.service == NodeService::kDraining && !node.standing.drain_overdue) {
    turn.Arm({.purpose = Timer::Purpose::kDrain, .node = node.id}, node.standing.drain_deadline + grace);
  }
}

}  // namespace

void RestoreVolatile(State& state) {
  state.jobs_by_key.clear();
  state.device_owner.clear();
  state.connected.clear();
  state.timers.clear();
  state.next_timer = 1;
  state.checks.clear();
  state.waiting_reason.clear();
  state.run_time_since.clear();
  state.unsettled.clear();
  for (const auto& [id, node] : state.nodes) {
    if (IsUnsettled(node)) state.unsettled.insert(id);
  }
  for (const auto& [id, job] : state.jobs) {
    if (!job.idempotency_key.empty()) state.jobs_by_key.emplace(KeyOf(job), id);
    if (!HasLiveGang(job.phase)) continue;
    for (const RankState& rank : job.attempt->ranks) {
      if (job.attempt->ranks_requested && !MayHaveProcesses(*job.attempt, rank.node)) continue;
      state.device_owner[{rank.node, rank.device}] = CurrentGeneration(job);
    }
  }
}

void OnCoordinatorStarted(Turn& turn, const CoordinatorStarted& event) {
  for (const auto& [id, job] : turn.state.jobs) {
    turn.WorkOn(id);
    ArmFor(turn, job, event.grace);
  }
  for (const auto& [id, node] : turn.state.nodes) ArmFor(turn, node, event.grace);
  if (!turn.state.nodes.empty()) turn.Arm({Timer::Purpose::kGrace, JobId(), 0}, event.grace);
  // A crash may have come between the last release and the decision: every host of the gang is lost or done.
  for (auto& [id, job] : turn.state.jobs) {
    turn.WorkOn(id);
    ConcludeIfReleased(turn, job);
  }
  turn.RequestPlan();
}

}  // namespace llmctl::core
