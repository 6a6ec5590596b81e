#include "coordinator/core/entity.h"

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::core {
namespace {

Entity JobEntity(const JobId& job) { return {kJobEntity, job.value()}; }
Entity NodeEntity(const NodeId& node) { return {kNodeEntity, node.value()}; }

Entity TimerEntity(const State& state, const TimerFired& event) {
  auto timer = state.timers.find(event.timer);
  if (timer == state.timers.end()) return {};
  if (!timer->second.job.empty()) return JobEntity(timer->second.job);
  return timer->second.node.empty() ? Entity{} : NodeEntity(timer->second.node);
}

}  // namespace

std::string SubmissionId(const JobSubmitted& event) {
  return event.idempotency_key.empty() ? "" : absl::StrCat(event.project, "/", event.idempotency_key);
}

Entity EntityOf(const State& state, const Event& event) {
  return std::visit(Overloaded{
                        [](const JobSubmitted& e) {
                          std::string id = SubmissionId(e);
                          return id.empty() ? Entity{} : Entity{kSubmissionEntity, std::move(id)};
                        },
                        [](const JobCancelled& e) { return JobEntity(e.job); },
                        [](const JobSuspended& e) { return JobEntity(e.job); },
                        [](const JobResumed& e) { return JobEntity(e.job); },
                        [](const JobDeleted& e) { return JobEntity(e.job); },
                        [](const NodeCordoned& e) { return NodeEntity(e.node); },
                        [](const NodeUncordoned& e) { return NodeEntity(e.node); },
                        [](const NodeDrainStarted& e) { return NodeEntity(e.node); },
                        [](const WorkerConnected& e) { return NodeEntity(e.node.id); },
                        [](const WorkerLost& e) { return NodeEntity(e.node); },
                        [](const PreflightFinished& e) { return NodeEntity(e.node); },
                        [](const ProbeAnswered& e) { return JobEntity(e.generation.job); },
                        [](const RankChanged& e) { return JobEntity(e.generation.job); },
                        [](const GangReleased& e) { return JobEntity(e.generation.job); },
                        [](const CheckpointOffered& e) { return JobEntity(e.generation.job); },
                        [](const JobHung& e) { return JobEntity(e.generation.job); },
                        [](const StragglerSeen& e) { return JobEntity(e.generation.job); },
                        [](const PlanReady&) { return Entity{}; },
                        [&](const TimerFired& e) { return TimerEntity(state, e); },
                        [](const CoordinatorStarted&) { return Entity{}; },
                    },
                    event);
}

}  // namespace llmctl::core
