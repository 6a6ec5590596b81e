#include "coordinator/runtime/snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

namespace llmctl::runtime {
namespace {

// Before it is changed: a part that another snapshot holds too is copied first. Those that could drop their share
// meanwhile are readers of snapshots older than the one that this is a copy of, which keeps its own.
template <typename Part>
Part& Own(std::shared_ptr<Part>& part) {
  if (!part) {
    part = std::make_shared<Part>();
  } else if (part.use_count() > 1) {
    part = std::make_shared<Part>(*part);
  }
  return *part;
}

}  // namespace

int64_t JobNumber(const JobId& id) {
  absl::string_view text = id.value();
  size_t dash = text.rfind('-');
  int64_t number = 0;
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(text.substr(dash + 1), &number)) return 0;
  return std::max<int64_t>(number, 0);
}

Snapshot::Snapshot(const core::State& state) : revision_(state.counters.revision), nodes_(std::make_shared<Nodes>()) {
  for (const auto& [id, job] : state.jobs) PutJob(std::make_shared<const Job>(job), revision_);
  for (const auto& [id, node] : state.nodes) PutNode(std::make_shared<const Node>(node));
}

const JobView* Snapshot::ViewOf(int64_t number) const {
  auto page = pages_.find(number / kJobsPerPage);
  if (page == pages_.end()) return nullptr;
  const std::shared_ptr<Chunk>& chunk = page->second->chunks[number % kJobsPerPage / kJobsPerChunk];
  if (!chunk) return nullptr;
  const JobView& view = chunk->jobs[number % kJobsPerChunk];
  return view.job ? &view : nullptr;
}

const JobView* Snapshot::FindJob(const JobId& id) const {
  const JobView* view = ViewOf(JobNumber(id));
  return view && view->job->id == id ? view : nullptr;
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
  if (pages_.empty()) return;
  int64_t last = (pages_.rbegin()->first + 1) * kJobsPerPage - 1;
  if (before > 0) last = std::min(last, before - 1);
  auto end = pages_.upper_bound(last / kJobsPerPage);
  for (auto page = std::make_reverse_iterator(end); page != pages_.rend(); ++page) {
    for (int64_t i = kChunksPerPage - 1; i >= 0; --i) {
      const std::shared_ptr<Chunk>& chunk = page->second->chunks[i];
      int64_t first_number = page->first * kJobsPerPage + i * kJobsPerChunk;
      if (!chunk || first_number > last) continue;
      for (int64_t j = std::min(kJobsPerChunk - 1, last - first_number); j >= 0; --j) {
        if (chunk->jobs[j].job && !visit(chunk->jobs[j])) return;
      }
    }
  }
}

void Snapshot::PutJob(std::shared_ptr<const Job> job, int64_t revision) {
  int64_t number = JobNumber(job->id);
  Page& page = Own(pages_[number / kJobsPerPage]);
  std::shared_ptr<Chunk>& place = page.chunks[number % kJobsPerPage / kJobsPerChunk];
  if (!place) ++page.used;
  Chunk& chunk = Own(place);
  JobView& view = chunk.jobs[number % kJobsPerChunk];
  if (!view.job) ++chunk.used;
  if (job->phase != JobPhase::kQueued) view.waiting = nullptr;
  view.job = std::move(job);
  view.revision = revision;
}

bool Snapshot::PutWaiting(const JobId& id, const std::shared_ptr<const std::string>& reason) {
  const JobView* view = FindJob(id);
  if (!view || view->job->phase != JobPhase::kQueued) return false;
  if (view->waiting && *view->waiting == *reason) return false;
  int64_t number = JobNumber(id);
  Page& page = Own(pages_.at(number / kJobsPerPage));
  Own(page.chunks[number % kJobsPerPage / kJobsPerChunk]).jobs[number % kJobsPerChunk].waiting = reason;
  return true;
}

void Snapshot::EraseJob(const JobId& id) {
  if (!FindJob(id)) return;
  int64_t number = JobNumber(id);
  auto found = pages_.find(number / kJobsPerPage);
  Page& page = Own(found->second);
  std::shared_ptr<Chunk>& place = page.chunks[number % kJobsPerPage / kJobsPerChunk];
  Chunk& chunk = Own(place);
  chunk.jobs[number % kJobsPerChunk] = {};
  if (--chunk.used > 0) return;
  place = nullptr;
  if (--page.used == 0) pages_.erase(found);
}

void Snapshot::PutNode(std::shared_ptr<const Node> node) {
  NodeId id = node->id;
  Own(nodes_)[id] = std::move(node);
}

}  // namespace llmctl::runtime
