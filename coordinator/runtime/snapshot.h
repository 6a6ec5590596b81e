// Snapshot: what readers see. An immutable picture of all jobs and nodes at one revision, shared by any number of
// readers without a lock.
//
// Copy on write: a new snapshot shares everything with the one before but the chunks that changed, so publishing
// costs by the change and not by the number of jobs. Jobs are kept by the number in their id, hence in the order
// of submission.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/base/ids.h"
#include "coordinator/core/state.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl::runtime {

struct JobView {
  std::shared_ptr<const Job> job;
  int64_t revision = 0;  // at which the job last changed
};

// The number of a job id ("j-17": 17), or 0 if it has none.
int64_t JobNumber(const JobId& id);

class Snapshot {
 public:
  using WaitingReasons = std::map<JobId, std::string>;

  // Everything as a coordinator loaded it.
  explicit Snapshot(const core::State& state);

  int64_t revision() const { return revision_; }
  // Null if there is none.
  const JobView* FindJob(const JobId& id) const;
  const JobView* FindNewestNamed(absl::string_view name) const;
  // From the newest down to the oldest, beginning below `before` (a job number; 0 begins with the newest), while
  // `visit` returns true.
  void VisitNewestFirst(int64_t before, const std::function<bool(const JobView&)>& visit) const;
  const std::map<NodeId, std::shared_ptr<const Node>>& nodes() const { return *nodes_; }
  // What a queued job waits for, from the last plan; may be empty.
  std::string WaitingReason(const JobId& id) const;
  const WaitingReasons& waiting_reasons() const { return *waiting_; }

  // ---- how the next snapshot is made from a copy of this one ----
  void PutJob(std::shared_ptr<const Job> job, int64_t revision);
  void EraseJob(const JobId& id);
  void PutNode(std::shared_ptr<const Node> node);
  void set_revision(int64_t revision) { revision_ = revision; }
  void set_waiting_reasons(std::shared_ptr<const WaitingReasons> reasons) { waiting_ = std::move(reasons); }

 private:
  using Chunk = std::map<int64_t, JobView>;

  int64_t revision_ = 0;
  std::map<int64_t, std::shared_ptr<const Chunk>> chunks_;
  std::shared_ptr<const std::map<NodeId, std::shared_ptr<const Node>>> nodes_;
  std::shared_ptr<const WaitingReasons> waiting_;
};

}  // namespace llmctl::runtime
