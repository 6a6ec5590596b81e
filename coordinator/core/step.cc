#include "coordinator/core/step.h"

#include "common/base/check.h"
#include "common/base/overloaded.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/invariants.h"
#include "coordinator/core/job_index.h"
#include "coordinator/core/node_ledger.h"
#include "coordinator/core/turn.h"

namespace llmctl::core {

std::vector<Command> Step(State& state, const Event& event, Instant now, Focus* focus) {
  Turn turn(state, event, now, focus);
  const int64_t room = state.room;
  std::visit(Overloaded{
                 [&](const JobSubmitted& e) { OnJobSubmitted(turn, e); },
                 [&](const JobCancelled& e) { OnJobCancelled(turn, e); },
                 [&](const JobSuspended& e) { OnJobSuspended(turn, e); },
                 [&](const JobResumed& e) { OnJobResumed(turn, e); },
                 [&](const JobDeleted& e) { OnJobDeleted(turn, e); },
                 [&](const NodeCordoned& e) { OnNodeCordoned(turn, e); },
                 [&](const NodeUncordoned& e) { OnNodeUncordoned(turn, e); },
                 [&](const NodeDrainStarted& e) { OnNodeDrainStarted(turn, e); },
                 [&](const WorkerConnected& e) { OnWorkerConnected(turn, e); },
                 [&](const WorkerLost& e) { OnWorkerLost(turn, e); },
                 [&](const PreflightFinished& e) { OnPreflightFinished(turn, e); },
                 [&](const ProbeAnswered& e) { OnProbeAnswered(turn, e); },
                 [&](const RankChanged& e) { OnRankChanged(turn, e); },
                 [&](const GangReleased& e) { OnGangReleased(turn, e); },
                 [&](const CheckpointOffered& e) { OnCheckpointOffered(turn, e); },
                 [&](const JobHung& e) { OnJobHung(turn, e); },
                 [&](const StragglerSeen& e) { OnStragglerSeen(turn, e); },
                 [&](const PlanReady& e) { OnPlanReady(turn, e); },
                 [&](const TimerFired& e) { OnTimerFired(turn, e); },
                 [&](const CoordinatorStarted& e) { OnCoordinatorStarted(turn, e); },
             },
             event);
  // Whatever lets a node's standing move on also makes room, or is a timer: no other step has to look at them all.
  if (state.room != room || std::holds_alternative<TimerFired>(event)) SettleNodes(turn);
  for (const JobId& id : turn.forgotten_jobs()) Reindex(state, id);
  for (const JobId& id : turn.changed_jobs()) {
    turn.WorkOn(id);
    Reindex(state, id);
    std::string broken = FindJobViolation(state, state.jobs.at(id));
    CHECK(broken.empty()) << broken;
  }
  if (focus != nullptr) focus->Clear();
  return turn.Finish();
}

}  // namespace llmctl::core
