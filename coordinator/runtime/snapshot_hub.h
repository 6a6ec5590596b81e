// SnapshotHub: the newest snapshot, the last changes, and who wants to hear of them.
//
// A watcher holds nothing but the revision it has seen: the hub keeps the last changes of all jobs in a ring, and
// NextChange() says what came after a revision, or OutOfRange when a change of that job has been forgotten since.
// So a watcher that is slow, or gone, costs nothing.
//
// Thread-safe. Callbacks run on the publishing thread, without a lock held: they must not block, and one may
// still come after Unsubscribe() has returned (they keep what they touch alive by shared_ptr).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/runtime/snapshot.h"
#include "coordinator/runtime/step_output.h"

namespace llmctl::runtime {

class SnapshotHub {
 public:
  struct Change {
    int64_t revision = 0;
    int64_t previous_revision = 0;  // of the job's change before
    JobId id;
    std::shared_ptr<const Job> job;  // null: deleted
  };

  // Keeps the last `changes_max` changes.
  SnapshotHub(const core::State& state, size_t changes_max);

  std::shared_ptr<const Snapshot> Get() const;

  // Calls `done` once: when the snapshot has reached the revision (now, if it has), or by Expire() after `deadline`
  // (monotonic).
  void AwaitRevision(int64_t revision, absl::Duration deadline, std::function<void()> done);
  // Ends the waits whose deadline has passed.
  void Expire(absl::Duration now);
  // Nothing will be published any more: ends all waits, and later ones at once.
  void Close();

  // Steps that are durable, in order.
  void Publish(const std::vector<StepOutput>& steps);
  // Something about the job that is no record changed (progress).
  void Touch(const JobId& job);

  // The first change of `job` after `revision`; nothing if there was none yet. OutOfRange: it has been forgotten,
  // or the revision has not happened.
  absl::StatusOr<std::optional<Change>> NextChange(const JobId& job, int64_t revision) const;

  int64_t Subscribe(const JobId& job, std::function<void()> changed);
  void Unsubscribe(const JobId& job, int64_t subscription);

 private:
  using Callbacks = std::vector<std::function<void()>>;
  struct RevisionWait {
    absl::Duration deadline;
    std::function<void()> done;
  };
  static void PutWaiting(const std::vector<Unplaced>& left_out, Snapshot& next, std::set<JobId>& touched);
  void CollectSubscribers(const JobId& job, Callbacks& out) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t changes_max_;

  mutable Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::multimap<int64_t, RevisionWait> waits_ ABSL_GUARDED_BY(mutex_);  // by revision
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_subscription_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<JobId, std::map<int64_t, std::function<void()>>> subscribers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
