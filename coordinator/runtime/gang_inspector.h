// GangInspector: asks all hosts of a gang what its ranks are doing, and brings the answers together.
//
// An inspection ends when all hosts have answered, or when its patience has run out: a host that does not answer is
// part of the finding. Thread-safe; `done` runs on the thread that ended the inspection and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "common/diagnosis/rank_view.h"
#include "coordinator/runtime/host_links.h"

namespace llmctl::runtime {

class GangInspector {
 public:
  using Done = std::function<void(std::vector<diagnosis::RankView>)>;

  GangInspector(const HostLinks& links, absl::Duration patience) : links_(links), patience_(patience) {}

  void Inspect(const InspectionQuery& query, const std::set<NodeId>& hosts, Instant now, Done done);
  void Deliver(const NodeId& node, int64_t request_id, std::vector<diagnosis::RankView> views);
  // The coordinator itself stood still: answers may have come that nobody has read.
  void Extend(absl::Duration stall);
  // Ends inspections that have waited too long.
  void Expire(Instant now);

 private:
  struct Pending {
    std::set<NodeId> awaited;
    std::vector<diagnosis::RankView> views;
    absl::Duration deadline;  // monotonic
    Done done;
  };
  const HostLinks& links_;
  const absl::Duration patience_;

  Mutex mutex_;
  std::map<int64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace llmctl::runtime
