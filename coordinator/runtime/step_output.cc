#include "coordinator/runtime/step_output.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/overloaded.h"
#include "coordinator/core/step.h"

namespace llmctl::runtime {

StepOutput SortCommands(const core::State& state, std::vector<core::Command> commands) {
  StepOutput out;
  out.revision = state.counters.revision;
  bool counters = false;
  // Most are records, and the counters come behind them.
  out.changes.reserve(commands.size() + 1);
  for (core::Command& command : commands) {
    std::visit(Overloaded{
                   [&](core::PersistJob& c) {
                     auto it = state.jobs.find(c.job);
                     CHECK(it != state.jobs.end()) << "a job that is persisted must be in the state: " << c.job;
                     out.changes.push_back(store::PutJob{std::make_shared<const Job>(it->second)});
                   },
                   [&](core::ForgetJob& c) { out.changes.push_back(store::EraseJob{std::move(c.job)}); },
                   [&](core::PersistNode& c) {
                     auto it = state.nodes.find(c.node);
                     CHECK(it != state.nodes.end()) << "a node that is persisted must be in the state: " << c.node;
                     out.changes.push_back(store::PutNode{std::make_shared<const Node>(it->second)});
                   },
                   [&](core::AppendJobEvent& c) {
                     out.changes.push_back(store::AppendEvent{std::move(c.job), std::move(c.event)});
                   },
                   [&](core::PersistCounters&) { counters = true; },
                   [&](core::ArmTimer& c) { out.inward.emplace_back(c); },
                   [&](core::RequestPlan& c) { out.inward.emplace_back(c); },
                   [&](auto& outward) { out.outbox.emplace_back(std::move(outward)); },
               },
               command);
  }
  if (counters || !out.changes.empty()) {
    out.changes.push_back(store::PutCounters{{state.counters.next_job, state.counters.revision}});
  }
  return out;
}

core::State StateFromRecords(store::Records records, Focus* focus) {
  core::State state;
  state.counters.next_job = records.counters.next_job;
  state.counters.revision = records.counters.revision;
  for (Job& job : records.jobs) {
    JobId id = job.id;
    state.jobs.emplace(std::move(id), std::move(job));
  }
  for (Node& node : records.nodes) {
    NodeId id = node.id;
    state.nodes.emplace(std::move(id), std::move(node));
  }
  core::RestoreVolatile(state, focus);
  return state;
}

}  // namespace llmctl::runtime
