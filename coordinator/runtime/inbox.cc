#include "coordinator/runtime/inbox.h"

#include <utility>

namespace llmctl::runtime {
namespace {

// Long enough to fill a commit, short enough that renewals are looked at many times within a lease.
constexpr size_t kEventsPerRound = 256;

}  // namespace

bool Inbox::Post(Priority priority, core::Event event) {
  MutexLock lock(mutex_);
  std::deque<Item>& queue = events_[static_cast<size_t>(priority)];
  if (priority == Priority::kUser && queue.size() >= users_max_) return false;
  queue.push_back(std::move(event));
  not_empty_.NotifyOne();
  return true;
}

void Inbox::PostRenewal(const NodeId& node, int64_t incarnation) {
  // Wakes nobody: the core's thread looks several times within a lease, and a wake-up per heartbeat would be
  // most of its work on a large cluster.
  MutexLock lock(mutex_);
  renewals_.push_back({node, incarnation});
}

void Inbox::PostAcknowledgement(Acknowledgement acknowledgement) {
  MutexLock lock(mutex_);
  events_[static_cast<size_t>(Priority::kHost)].push_back(std::move(acknowledgement));
}

void Inbox::PostPardon(Pardon pardon) {
  MutexLock lock(mutex_);
  events_[static_cast<size_t>(Priority::kUser)].push_back(std::move(pardon));
  not_empty_.NotifyOne();
}

void Inbox::PostCommit(absl::Status outcome) {
  MutexLock lock(mutex_);
  commit_ = std::move(outcome);
  not_empty_.NotifyOne();
}

void Inbox::Stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  not_empty_.NotifyOne();
}

bool Inbox::Empty() const {
  for (const auto& queue : events_) {
    if (!queue.empty()) return false;
  }
  return !commit_ && stopping_ == stop_seen_;
}

Inbox::Items Inbox::Wait(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (Empty()) {
    if (!not_empty_.WaitUntil(mutex_, deadline)) break;
  }
  stop_seen_ = stopping_;
  Items items;
  items.stopping = stopping_;
  items.renewals.swap(renewals_);
  items.commit.swap(commit_);
  for (std::deque<Item>& queue : events_) {
    for (size_t i = 0; i < kEventsPerRound && !queue.empty(); ++i) {
      items.events.push_back(std::move(queue.front()));
      queue.pop_front();
    }
  }
  return items;
}

}  // namespace llmctl::runtime
