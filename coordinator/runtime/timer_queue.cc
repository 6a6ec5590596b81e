#include "coordinator/runtime/timer_queue.h"

#include <algorithm>
#include <utility>

namespace llmctl::runtime {

void TimerQueue::Arm(const core::ArmTimer& timer, Instant now) {
  entries_.emplace(now.monotonic + timer.delay, Entry{timer.timer, timer.awaits_others});
}

void TimerQueue::Extend(absl::Duration stall, absl::Duration earliest) {
  std::multimap<absl::Duration, Entry> moved;
  for (const auto& [due, entry] : entries_) {
    moved.emplace(entry.awaits_others ? std::max(due + stall, earliest) : due, entry);
  }
  entries_ = std::move(moved);
}

std::vector<int64_t> TimerQueue::TakeDue(Instant now) {
  std::vector<int64_t> due;
  auto later = entries_.upper_bound(now.monotonic);
  for (auto it = entries_.begin(); it != later; ++it) due.push_back(it->second.timer);
  entries_.erase(entries_.begin(), later);
  return due;
}

absl::Duration TimerQueue::next_due() const {
  return entries_.empty() ? absl::InfiniteDuration() : entries_.begin()->first;
}

}  // namespace llmctl::runtime
