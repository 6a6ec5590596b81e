#include "simulator/record_store.h"

#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "coordinator/runtime/step_output.h"

namespace llmctl::simulator {
namespace {

// What is durable of a job only moves forward.
std::string StepBack(const Job& before, const Job& after) {
  if (IsTerminal(before.phase) && after.phase != before.phase) return "left a terminal phase";
  if (after.last_attempt < before.last_attempt) return "went back in attempts";
  if (after.last_generation < before.last_generation) return "went back in generations";
  if (before.cancel_requested && !after.cancel_requested) return "forgot a cancel";
  if (before.cancel_requested && after.last_generation != before.last_generation) return "began a gang after a cancel";
  if (after.checkpoints.size() < before.checkpoints.size()) return "lost a checkpoint";
  if (after.checkpoints.empty()) return "";
  const CheckpointRecord& last = after.checkpoints.back();
  if (before.checkpoints.empty()) return last.generation < before.last_generation ? "took a fenced checkpoint" : "";
  const CheckpointRecord& old_last = before.checkpoints.back();
  if (last == old_last) return "";
  if (last.step < old_last.step || last.generation < old_last.generation) return "went back in checkpoints";
  // A batch may hold both the commit and the generation after it, hence the comparison with what was durable before.
  return last.generation < before.last_generation ? "took a fenced checkpoint" : "";
}

}  // namespace

std::string RecordStore::PutJob(const Job& job) {
  auto known = jobs_.find(job.id);
  std::string broken;
  if (known != jobs_.end()) broken = StepBack(known->second, job);
  jobs_[job.id] = job;
  return broken.empty() ? "" : absl::StrCat("job ", job.id.value(), " ", broken);
}

std::string RecordStore::Apply(const store::Change& change) {
  return std::visit(
      Overloaded{
          [&](const store::PutJob& c) { return PutJob(*c.job); },
          [&](const store::EraseJob& c) {
            jobs_.erase(c.job);
            last_event_.erase(c.job);
            return std::string();
          },
          [&](const store::PutNode& c) {
            nodes_[c.node->id] = *c.node;
            return std::string();
          },
          [&](const store::AppendEvent& c) {
            int64_t before = last_event_[c.job];
            last_event_[c.job] = c.event.sequence;
            if (c.event.sequence == before + 1) return std::string();
            return absl::StrCat("the history of ", c.job.value(), " goes from ", before, " to ", c.event.sequence);
          },
          [&](const store::PutCounters& c) {
            counters_ = c.counters;
            return std::string();
          },
          // The simulated process does not crash by its own fault.
          [](const store::PutCrash&) { return std::string("a crash was counted"); },
          [](const store::EraseCrash&) { return std::string(); },
          [](const store::PutDamaged&) { return std::string("a record counts as damaged"); },
      },
      change);
}

core::State RecordStore::Load() const {
  store::Records records;
  records.counters = counters_;
  for (const auto& [id, job] : jobs_) records.jobs.push_back(job);
  for (const auto& [id, node] : nodes_) records.nodes.push_back(node);
  return runtime::StateFromRecords(std::move(records));
}

bool RecordStore::Holds(const core::State& state) const {
  return counters_.next_job == state.counters.next_job && counters_.revision == state.counters.revision &&
         jobs_ == state.jobs && nodes_ == state.nodes;
}

}  // namespace llmctl::simulator
