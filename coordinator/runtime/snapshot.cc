#include "coordinator/runtime/snapshot.h"

#include <utility>

#include "absl/strings/numbers.h"

namespace llmctl::runtime {
namespace {

// Small enough that copying one is cheap, large enough that the list of chunks is short.
constexpr int64_t kJobsPerChunk = 64;

}  // namespace

int64_t JobNumber(const JobId& id) {
  size_t dash = id.value().rfind('-');
  int64_t number = 0;
  if (dash == std::string::npos || !absl::SimpleAtoi(id.value().substr(dash + 1), &number)) return 0;
  return number;
}

Snapshot::Snapshot(const core::State& state)
    : revision_(state.counters.revision),
      nodes_(std::make_shared<const std::map<NodeId, std::shared_ptr<const Node>>>()),
      waiting_(std::make_shared<const WaitingReasons>(state.waiting_reason)) {
  for (const auto& [id, job] : state.jobs) PutJob(std::make_shared<const Job>(job), revision_);
  for (const auto& [id, node] : state.nodes) PutNode(std::make_shared<const Node>(node));
}

const JobView* Snapshot::FindJob(const JobId& id) const {
  int64_t number = JobNumber(id);
  auto chunk = chunks_.find(number / kJobsPerChunk);
  if (chunk == chunks_.end()) return nullptr;
  auto it = chunk->second->find(number);
  return it == chunk->second->end() || it->second.job->id != id ? nullptr : &it->second;
}

const JobView* Snapshot::FindNewestNamed(absl::string_view name) const {
  const JobView* found = nullptr;
  VisitNewestFirst(0, [&](const JobView& view) {
    if (view.job->name == name) found = &view;
    return found == nullptr;
  });
  return found;
}

void Snapshot::VisitNewestFirst(int64_t before, const std::function<bool(const JobView&)>& visit) const {
  auto end = before > 0 ? chunks_.upper_bound(before / kJobsPerChunk) : chunks_.end();
  for (auto chunk = std::make_reverse_iterator(end); chunk != chunks_.rend(); ++chunk) {
    for (auto it = chunk->second->rbegin(); it != chunk->second->rend(); ++it) {
      if (before > 0 && it->first >= before) continue;
      if (!visit(it->second)) return;
    }
  }
}

std::string Snapshot::WaitingReason(const JobId& id) const {
  auto it = waiting_->find(id);
  return it == waiting_->end() ? "" : it->second;
}

void Snapshot::PutJob(std::shared_ptr<const Job> job, int64_t revision) {
  int64_t number = JobNumber(job->id);
  std::shared_ptr<const Chunk>& chunk = chunks_[number / kJobsPerChunk];
  auto next = chunk ? std::make_shared<Chunk>(*chunk) : std::make_shared<Chunk>();
  (*next)[number] = {std::move(job), revision};
  chunk = std::move(next);
}

void Snapshot::EraseJob(const JobId& id) {
  int64_t number = JobNumber(id);
  auto chunk = chunks_.find(number / kJobsPerChunk);
  if (chunk == chunks_.end()) return;
  auto next = std::make_shared<Chunk>(*chunk->second);
  next->erase(number);
  if (next->empty()) {
    chunks_.erase(chunk);
  } else {
    chunk->second = std::move(next);
  }
}

void Snapshot::PutNode(std::shared_ptr<const Node> node) {
  auto next = std::make_shared<std::map<NodeId, std::shared_ptr<const Node>>>(*nodes_);
  NodeId id = node->id;
  (*next)[id] = std::move(node);
  nodes_ = std::move(next);
}

}  // namespace llmctl::runtime
