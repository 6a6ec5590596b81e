#include "coordinator/runtime/commit_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/overloaded.h"

namespace llmctl::runtime {

void CommitPipeline::Add(StepOutput step) { steps_.push_back(std::move(step)); }

void CommitPipeline::Acknowledge(int64_t link, std::function<void()> give, int64_t revision) {
  if (durable_ + in_flight_ == steps_.size()) steps_.push_back({.revision = revision});
  steps_.back().acknowledge.insert_or_assign(link, std::move(give));
}

std::shared_ptr<const std::vector<store::Change>> CommitPipeline::Begin() {
  if (in_flight_ > 0) return nullptr;
  PassEmptySteps();
  if (durable_ == steps_.size()) return nullptr;
  in_flight_ = steps_.size() - durable_;
  // Kept in the steps as well: they are published when durable, and written again if this fails.
  std::vector<store::Change> batch = steps_[durable_].changes;
  for (size_t i = durable_ + 1; i < steps_.size(); ++i) {
    batch.insert(batch.end(), steps_[i].changes.begin(), steps_[i].changes.end());
  }
  // A step by itself writes each record once.
  if (in_flight_ > 1) batch = DropReplaced(std::move(batch));
  return std::make_shared<const std::vector<store::Change>>(std::move(batch));
}

void CommitPipeline::Succeeded() {
  CHECK_GT(in_flight_, 0u) << "no batch is in flight";
  durable_ += in_flight_;
  in_flight_ = 0;
}

void CommitPipeline::Failed() {
  CHECK_GT(in_flight_, 0u) << "no batch is in flight";
  in_flight_ = 0;
  GatherAcknowledgements();
}

void CommitPipeline::GatherAcknowledgements() {
  std::map<int64_t, std::function<void()>> newest;
  auto waiting = steps_.begin() + static_cast<std::ptrdiff_t>(durable_);
  for (auto step = waiting; step != steps_.end(); ++step) {
    for (auto& [link, give] : step->acknowledge) newest.insert_or_assign(link, std::move(give));
    step->acknowledge.clear();
  }
  auto is_empty = [](const StepOutput& step) {
    return step.changes.empty() && step.outbox.empty() && step.left_out.empty();
  };
  steps_.erase(std::remove_if(waiting, steps_.end(), is_empty), steps_.end());
  // There is one: the batch that failed had a change.
  steps_.back().acknowledge = std::move(newest);
}

std::vector<StepOutput> CommitPipeline::TakeDurable() {
  if (in_flight_ == 0) PassEmptySteps();
  std::vector<StepOutput> out;
  out.reserve(durable_);
  for (; durable_ > 0; --durable_) {
    out.push_back(std::move(steps_.front()));
    steps_.pop_front();
  }
  return out;
}

void CommitPipeline::PassEmptySteps() {
  while (durable_ < steps_.size() && steps_[durable_].changes.empty()) ++durable_;
}

void CommitPipeline::VisitWaiting(const std::function<void(const StepOutput&)>& visit) const {
  for (size_t i = durable_; i < steps_.size(); ++i) visit(steps_[i]);
}

std::vector<store::Change> DropReplaced(std::vector<store::Change> batch) {
  std::set<JobId> jobs;
  std::set<NodeId> nodes;
  bool counters = false;
  std::vector<store::Change> kept;
  for (auto it = batch.rbegin(); it != batch.rend(); ++it) {
    bool newest = std::visit(Overloaded{
                                 [&](const store::PutJob& c) { return jobs.insert(c.job->id).second; },
                                 [&](const store::EraseJob& c) {
                                   jobs.insert(c.job);
                                   return true;
                                 },
                                 [&](const store::PutNode& c) { return nodes.insert(c.node->id).second; },
                                 [&](const store::AppendEvent&) { return true; },
                                 [&](const store::PutCounters&) { return !std::exchange(counters, true); },
                                 [&](const store::PutCrash&) { return true; },
                                 [&](const store::EraseCrash&) { return true; },
                                 [&](const store::PutDamaged&) { return true; },
                                 [&](const store::EraseDamaged&) { return true; },
                             },
                             *it);
    if (newest) kept.push_back(std::move(*it));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace llmctl::runtime
