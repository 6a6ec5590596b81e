// Which hosts are alive? A host holds a lease that its heartbeats renew; when it runs out, the host is lost.
//
// The danger is on our side: a coordinator that was stopped (SIGSTOP, VM pause, a slow disk) would find every
// lease expired on waking, though all hosts kept renewing. So before anything expires, the caller first applies
// the renewals that were queued meanwhile, and calls Extend() with the time it was away: a stall of ours costs
// no host its lease.
// Hosts that have not said hello since a start hold no lease: the core's own grace covers them.
// A host that has said hello cannot send heartbeats before it is welcomed, and the welcome waits for our disk: its
// lease is reserved until then and cannot run out, however slow the disk.
//
// Pure: time is an argument. Single-threaded: the runtime's core thread, or the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"

namespace llmctl::runtime {

class LeaseTable {
 public:
  struct Expired {
    NodeId node;
    int64_t incarnation = 0;
    bool operator==(const Expired&) const = default;
  };

  explicit LeaseTable(absl::Duration lease) : lease_(lease) {}

  // The host is admitted with this incarnation, in place of any other; its welcome is on the way.
  void Reserve(const NodeId& node, int64_t incarnation);
  // The welcome leaves: a full lease. Ignored if another incarnation has been admitted since.
  void Grant(const NodeId& node, int64_t incarnation, Instant now);
  // A heartbeat. Ignored unless this incarnation holds the lease.
  void Renew(const NodeId& node, int64_t incarnation, Instant now);
  // All leases last longer by the time that we could not hear renewals.
  void Extend(absl::Duration stall);
  // No lease ends before `deadline` (monotonic).
  void KeepUntil(absl::Duration deadline);

  // Removes and returns the leases that ended at or before `now`, in the order of node ids.
  std::vector<Expired> TakeExpired(Instant now);
  // When the first of those that TakeExpired() left runs out unless it is renewed; never, if there are none.
  absl::Duration next_deadline() const { return next_deadline_; }
  bool Holds(const NodeId& node, int64_t incarnation) const;

 private:
  struct Lease {
    int64_t incarnation = 0;
    absl::Duration deadline = absl::ZeroDuration();  // on the monotonic clock
    int reserved = 0;  // welcomes on the way; while there are any, there is no deadline
  };
  const absl::Duration lease_;
  std::map<NodeId, Lease> leases_;
  absl::Duration next_deadline_ = absl::InfiniteDuration();
};

}  // namespace llmctl::runtime
