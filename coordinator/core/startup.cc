// The coordinator has started on records that another life of it wrote.
//
// Training went on meanwhile, so nothing is decided until the hosts have spoken or the grace is over: gangs keep
// their phases, every wait for them begins anew. Those of the ledger last for hours and go on where they were.
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "coordinator/core/deadlines.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/job_index.h"
#include "coordinator/core/node_ledger.h"
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
  ResumeWaits(turn, node);
}

}  // namespace

void RestoreVolatile(State& state, Focus* focus) {
  auto work_on = [focus](absl::string_view kind, const std::string& id) {
    if (focus != nullptr) focus->Set(Focus::Stage::kLoad, kind, id);
  };
  state.jobs_by_key.clear();
  state.device_owner.clear();
  state.connected.clear();
  state.timers.clear();
  state.next_timer = 1;
  state.checks.clear();
  state.proven_hosts.clear();
  state.waiting_reason.clear();
  state.run_time_since.clear();
  state.preflights.clear();
  state.unsettled.clear();
  for (const auto& [id, node] : state.nodes) {
    work_on(kNodeEntity, id.value());
    if (IsUnsettled(node)) state.unsettled.insert(id);
  }
  state.room = 1;
  state.planned_room = 0;
  ReindexAll(state);
  for (const auto& [id, job] : state.jobs) {
    work_on(kJobEntity, id.value());
    if (!job.idempotency_key.empty()) state.jobs_by_key.emplace(KeyOf(job), id);
    if (!HasLiveGang(job.phase)) continue;
    for (const RankState& rank : job.attempt->ranks) {
      if (job.attempt->ranks_requested && !MayHaveProcesses(*job.attempt, rank.node)) continue;
      state.device_owner[{rank.node, rank.device}] = CurrentGeneration(job);
    }
  }
  if (focus != nullptr) focus->Clear();
}

void OnCoordinatorStarted(Turn& turn, const CoordinatorStarted& event) {
  for (const auto& [id, job] : turn.state.jobs) {
    turn.WorkOn(id);
    ArmFor(turn, job, event.grace);
  }
  for (const auto& [id, node] : turn.state.nodes) {
    turn.WorkOn(id);
    ArmFor(turn, node, event.grace);
  }
  if (!turn.state.nodes.empty()) turn.Arm({Timer::Purpose::kGrace, JobId(), 0}, event.grace);
  // A crash may have come between the last release and the decision: every host of the gang is lost or done.
  for (auto& [id, job] : turn.state.jobs) {
    turn.WorkOn(id);
    ConcludeIfReleased(turn, job);
  }
  turn.WorkOnEvent();
  turn.RequestPlan();
}

}  // namespace llmctl::core
