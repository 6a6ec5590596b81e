#include "simulator/record_store.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::simulator {
namespace {

std::string CheckpointStepBack(const Job& before, const Job& after) {
  if (after.checkpoints.size() < before.checkpoints.size()) return "lost a checkpoint";
  if (after.checkpoints.empty()) return "";
  const CheckpointRecord& last = after.checkpoints.back();
  if (!before.checkpoints.empty()) {
    const CheckpointRecord& old_last = before.checkpoints.back();
    if (last == old_last) return "";
    if (last.step < old_last.step || last.generation < old_last.generation) return "went back in checkpoints";
  }
  // A batch may hold both the commit and the generation after it, hence the comparison with what was durable before.
  if (last.generation < before.last_generation) return "took a fenced checkpoint";
  if (HasLiveGang(after.phase) && last.generation == after.last_generation && after.infrastructure_failures > 0) {
    return "goes on counting failures after a checkpoint";
  }
  return "";
}

// What is durable of a job only moves forward.
std::string StepBack(const Job& before, const Job& after) {
  if (IsTerminal(before.phase) && after.phase != before.phase) return "left a terminal phase";
  if (after.last_attempt < before.last_attempt) return "went back in attempts";
  if (after.last_generation < before.last_generation) return "went back in generations";
  if (before.cancel_requested && !after.cancel_requested) return "forgot a cancel";
  if (before.cancel_requested && after.last_generation != before.last_generation) return "began a gang after a cancel";
  return CheckpointStepBack(before, after);
}

// Where two records of a job are not the same, for a person.
std::string DescribeDifference(const Job& a, const Job& b) {
  std::string fields;
  auto compare = [&](const char* name, const auto& x, const auto& y) {
    if (!(x == y)) absl::StrAppend(&fields, fields.empty() ? "" : ", ", name);
  };
  compare("phase", a.phase, b.phase);
  compare("reason", a.reason, b.reason);
  compare("last_attempt", a.last_attempt, b.last_attempt);
  compare("last_generation", a.last_generation, b.last_generation);
  compare("cancel_requested", a.cancel_requested, b.cancel_requested);
  compare("suspend_requested", a.suspend_requested, b.suspend_requested);
  compare("infrastructure_failures", a.infrastructure_failures, b.infrastructure_failures);
  compare("attempt", a.attempt, b.attempt);
  compare("past_attempts", a.past_attempts, b.past_attempts);
  compare("checkpoints", a.checkpoints, b.checkpoints);
  compare("run_time", a.run_time, b.run_time);
  compare("submit_time", a.submit_time, b.submit_time);
  compare("start_time", a.start_time, b.start_time);
  compare("end_time", a.end_time, b.end_time);
  compare("last_event", a.last_event, b.last_event);
  return absl::StrCat("job ", a.id.value(), " (", fields.empty() ? "other fields" : fields, ")");
}

}  // namespace

std::string RecordStore::PutJob(std::shared_ptr<const Job> job) {
  std::shared_ptr<const Job>& known = jobs_[job->id];
  std::string broken;
  if (known != nullptr) broken = StepBack(*known, *job);
  if (!broken.empty()) broken = absl::StrCat("job ", job->id.value(), " ", broken);
  changed_.insert(job->id);
  known = std::move(job);
  return broken;
}

std::string RecordStore::Apply(const store::Change& change) {
  return std::visit(
      Overloaded{
          [&](const store::PutJob& c) { return PutJob(c.job); },
          [&](const store::EraseJob& c) {
            jobs_.erase(c.job);
            last_event_.erase(c.job);
            changed_.insert(c.job);
            return std::string();
          },
          [&](const store::PutNode& c) {
            nodes_[c.node->id] = c.node;
            return std::string();
          },
          [&](const store::AppendEvent& c) {
            int64_t before = std::exchange(last_event_[c.job], c.event.sequence);
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
          [](const store::EraseDamaged&) { return std::string(); },
      },
      change);
}

RecordStore RecordStore::ReplacedBy(const std::vector<store::Change>& batch) const {
  RecordStore some;
  some.counters_ = counters_;
  auto keep_job = [&](const JobId& id) {
    if (auto found = jobs_.find(id); found != jobs_.end()) some.jobs_.insert(*found);
  };
  auto keep_node = [&](const NodeId& id) {
    if (auto found = nodes_.find(id); found != nodes_.end()) some.nodes_.insert(*found);
  };
  for (const store::Change& change : batch) {
    if (const auto* put = std::get_if<store::PutJob>(&change)) keep_job(put->job->id);
    if (const auto* erase = std::get_if<store::EraseJob>(&change)) keep_job(erase->job);
    if (const auto* put = std::get_if<store::PutNode>(&change)) keep_node(put->node->id);
  }
  return some;
}

store::Records RecordStore::Read() const {
  store::Records records;
  records.counters = counters_;
  for (const auto& [id, job] : jobs_) records.jobs.push_back(*job);
  for (const auto& [id, node] : nodes_) records.nodes.push_back(*node);
  return records;
}

std::string RecordStore::Difference(const core::State& state) const {
  if (counters_.next_job != state.counters.next_job) return "the counter of jobs";
  if (counters_.revision != state.counters.revision) return "the revision";
  if (jobs_.size() != state.jobs.size()) return "the number of jobs";
  for (const auto& [id, job] : state.jobs) {
    const Job* stored = Find(id);
    if (stored == nullptr) return absl::StrCat("job ", id.value());
    if (*stored != job) return DescribeDifference(*stored, job);
  }
  if (nodes_.size() != state.nodes.size()) return "the number of nodes";
  for (const auto& [id, node] : state.nodes) {
    auto stored = nodes_.find(id);
    if (stored == nodes_.end() || *stored->second != node) return absl::StrCat("node ", id.value());
  }
  return "";
}

std::string RecordStore::Difference(const store::Records& records) const {
  if (!(counters_ == records.counters)) return "the counters";
  if (jobs_.size() != records.jobs.size()) return "the number of jobs";
  for (const Job& job : records.jobs) {
    const Job* known = Find(job.id);
    if (known == nullptr) return absl::StrCat("job ", job.id.value());
    if (*known != job) return DescribeDifference(*known, job);
  }
  if (nodes_.size() != records.nodes.size()) return "the number of nodes";
  for (const Node& node : records.nodes) {
    auto known = nodes_.find(node.id);
    if (known == nodes_.end() || *known->second != node) return absl::StrCat("node ", node.id.value());
  }
  return "";
}

const Job* RecordStore::Find(const JobId& id) const {
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

std::set<JobId> RecordStore::TakeChanged() { return std::exchange(changed_, {}); }

}  // namespace llmctl::simulator
