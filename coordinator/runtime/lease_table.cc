#include "coordinator/runtime/lease_table.h"

#include <algorithm>

namespace llmctl::runtime {

void LeaseTable::Reserve(const NodeId& node, int64_t incarnation) {
  Lease& lease = leases_[node];
  if (lease.incarnation != incarnation) lease = {.incarnation = incarnation};
  ++lease.reserved;
}

void LeaseTable::Grant(const NodeId& node, int64_t incarnation, Instant now) {
  Lease& lease = leases_[node];
  if (lease.incarnation != incarnation) {
    if (lease.reserved > 0) return;
    lease = {.incarnation = incarnation};
  }
  if (lease.reserved > 0) --lease.reserved;
  lease.deadline = std::max(lease.deadline, now.monotonic + lease_);
}

void LeaseTable::Renew(const NodeId& node, int64_t incarnation, Instant now) {
  auto it = leases_.find(node);
  if (it == leases_.end() || it->second.incarnation != incarnation) return;
  // Never shortens: an extension after a stall may end later.
  it->second.deadline = std::max(it->second.deadline, now.monotonic + lease_);
}

void LeaseTable::Extend(absl::Duration stall) {
  for (auto& [node, lease] : leases_) lease.deadline += stall;
}

void LeaseTable::KeepUntil(absl::Duration deadline) {
  for (auto& [node, lease] : leases_) lease.deadline = std::max(lease.deadline, deadline);
}

std::vector<LeaseTable::Expired> LeaseTable::TakeExpired(Instant now) {
  std::vector<Expired> expired;
  next_deadline_ = absl::InfiniteDuration();
  for (auto it = leases_.begin(); it != leases_.end();) {
    const Lease& lease = it->second;
    if (lease.reserved == 0 && lease.deadline <= now.monotonic) {
      expired.push_back({it->first, lease.incarnation});
      it = leases_.erase(it);
      continue;
    }
    if (lease.reserved == 0) next_deadline_ = std::min(next_deadline_, lease.deadline);
    ++it;
  }
  return expired;
}

bool LeaseTable::Holds(const NodeId& node, int64_t incarnation) const {
  auto it = leases_.find(node);
  return it != leases_.end() && it->second.incarnation == incarnation;
}

}  // namespace llmctl::runtime
