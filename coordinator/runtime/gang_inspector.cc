#include "coordinator/runtime/gang_inspector.h"

#include <memory>
#include <utility>

#include "coordinator/runtime/waiting.h"

namespace llmctl::runtime {

void GangInspector::Inspect(const InspectionQuery& query, const std::set<NodeId>& hosts, Instant now, Done done) {
  InspectionQuery numbered = query;
  {
    MutexLock lock(mutex_);
    numbered.request_id = next_++;
    pending_[numbered.request_id] = {
        .awaited = hosts, .deadline = now.monotonic + patience_, .done = std::move(done)};
  }
  for (const NodeId& host : hosts) {
    // One without a link stays awaited: nothing will be known of its ranks.
    if (std::shared_ptr<HostLink> link = links_.Find(host)) link->Inspect(numbered);
  }
}

void GangInspector::Deliver(const NodeId& node, int64_t request_id, std::vector<diagnosis::RankView> views) {
  Pending ended;
  {
    MutexLock lock(mutex_);
    auto it = pending_.find(request_id);
    if (it == pending_.end() || it->second.awaited.erase(node) == 0) return;
    for (diagnosis::RankView& view : views) it->second.views.push_back(std::move(view));
    if (!it->second.awaited.empty()) return;
    ended = std::move(it->second);
    pending_.erase(it);
  }
  ended.done(std::move(ended.views));
}

void GangInspector::Extend(absl::Duration stall) {
  MutexLock lock(mutex_);
  ExtendDeadlines(pending_, stall);
}

void GangInspector::Expire(Instant now) {
  std::vector<Pending> late;
  {
    MutexLock lock(mutex_);
    late = TakeLate(pending_, now);
  }
  for (Pending& pending : late) pending.done(std::move(pending.views));
}

}  // namespace llmctl::runtime
