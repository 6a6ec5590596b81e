// Snapshot: what readers see. An immutable picture of all jobs and nodes at one revision, shared by any number of
// readers without a lock.
//
// Copy on write: jobs are kept by the number in their id, hence in the order of submission, in pages of chunks. A new
// snapshot shares every page and chunk with the one before but those that hold a change, so publishing costs by the
// change and not by the number of jobs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "common/base/ids.h"
#include "coordinator/core/state.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl::runtime {

struct JobView {
  std::shared_ptr<const Job> job;
  int64_t revision = 0;  // at which the job last changed
  // What a queued job waits for, from the last plan that considered it; null: no plan has yet.
  std::shared_ptr<const std::string> waiting;
};

// The number of a job id ("j-17": 17), or 0 if it has none.
int64_t JobNumber(const JobId& id);

class Snapshot {
 public:
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

  // ---- how the next snapshot is made from a copy of this one ----
  // By one thread, before anybody else sees the copy, and while the one it was copied from exists: what only the copy
  // holds is changed in place.
  void PutJob(std::shared_ptr<const Job> job, int64_t revision);
  // Whether that is news.
  bool PutWaiting(const JobId& id, const std::shared_ptr<const std::string>& reason);
  void EraseJob(const JobId& id);
  void PutNode(std::shared_ptr<const Node> node);
  void set_revision(int64_t revision) { revision_ = revision; }

 private:
  // Small enough that copying one is cheap, large enough that the lists above are short.
  static constexpr int64_t kJobsPerChunk = 64;
  static constexpr int64_t kChunksPerPage = 64;
  static constexpr int64_t kJobsPerPage = kJobsPerChunk * kChunksPerPage;

  struct Chunk {
    std::array<JobView, kJobsPerChunk> jobs;  // without a job: free
    int64_t used = 0;
  };
  struct Page {
    std::array<std::shared_ptr<Chunk>, kChunksPerPage> chunks;  // null: empty
    int64_t used = 0;
  };
  using Nodes = std::map<NodeId, std::shared_ptr<const Node>>;

  const JobView* ViewOf(int64_t number) const;

  int64_t revision_ = 0;
  std::map<int64_t, std::shared_ptr<Page>> pages_;
  std::shared_ptr<Nodes> nodes_;
};

}  // namespace llmctl::runtime
