#include "coordinator/runtime/snapshot_hub.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::runtime {

SnapshotHub::SnapshotHub(const core::State& state, size_t changes_max)
    : changes_max_(changes_max), snapshot_(std::make_shared<const Snapshot>(state)) {}

std::shared_ptr<const Snapshot> SnapshotHub::Get() const {
  MutexLock lock(mutex_);
  return snapshot_;
}

void SnapshotHub::AwaitRevision(int64_t revision, absl::Duration deadline, std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    if (snapshot_->revision() < revision && !closed_) {
      waits_.emplace(revision, RevisionWait{deadline, std::move(done)});
      return;
    }
  }
  done();
}

void SnapshotHub::Expire(absl::Duration now) {
  Callbacks over;
  {
    MutexLock lock(mutex_);
    for (auto it = waits_.begin(); it != waits_.end();) {
      if (it->second.deadline > now) {
        ++it;
        continue;
      }
      over.push_back(std::move(it->second.done));
      it = waits_.erase(it);
    }
  }
  for (auto& done : over) done();
}

void SnapshotHub::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  Expire(absl::InfiniteDuration());
}

void SnapshotHub::Publish(const std::vector<StepOutput>& steps) {
  // The one it is a copy of stays `snapshot_` until it is replaced, as Snapshot demands.
  auto next = std::make_shared<Snapshot>(*Get());
  std::vector<Change> changes;
  std::set<JobId> touched;
  auto previous = [&](const JobId& id) {
    const JobView* view = next->FindJob(id);
    return view ? view->revision : 0;
  };
  for (const StepOutput& step : steps) {
    for (const store::Change& change : step.changes) {
      std::visit(Overloaded{
                     [&](const store::PutJob& c) {
                       changes.push_back({step.revision, previous(c.job->id), c.job->id, c.job});
                       next->PutJob(c.job, step.revision);
                     },
                     [&](const store::EraseJob& c) {
                       changes.push_back({step.revision, previous(c.job), c.job, nullptr});
                       next->EraseJob(c.job);
                     },
                     [&](const store::PutNode& c) { next->PutNode(c.node); },
                     [&](const store::AppendEvent&) {},
                     [&](const store::PutCounters&) {},
                     // Not for readers of jobs and hosts.
                     [&](const store::PutCrash&) {},
                     [&](const store::EraseCrash&) {},
                     [&](const store::PutDamaged&) {},
                     [&](const store::EraseDamaged&) {},
                 },
                 change);
    }
    PutWaiting(step.left_out, *next, touched);
    next->set_revision(step.revision);
  }
  for (const Change& change : changes) touched.insert(change.id);

  Callbacks callbacks;
  std::shared_ptr<const Snapshot> old;  // its last share may be ours: not to be dropped under the lock
  {
    MutexLock lock(mutex_);
    auto reached = waits_.upper_bound(next->revision());
    for (auto it = waits_.begin(); it != reached; ++it) callbacks.push_back(std::move(it->second.done));
    waits_.erase(waits_.begin(), reached);
    old = std::exchange(snapshot_, std::move(next));
    for (Change& change : changes) changes_.push_back(std::move(change));
    while (changes_.size() > changes_max_) changes_.pop_front();
    if (!subscribers_.empty()) {
      for (const JobId& job : touched) CollectSubscribers(job, callbacks);
    }
  }
  for (auto& callback : callbacks) callback();
}

void SnapshotHub::PutWaiting(const std::vector<Unplaced>& left_out, Snapshot& next, std::set<JobId>& touched) {
  std::shared_ptr<const std::string> reason;
  for (const Unplaced& unplaced : left_out) {
    // In a long queue most wait for the same.
    if (!reason || *reason != unplaced.reason) reason = std::make_shared<const std::string>(unplaced.reason);
    if (next.PutWaiting(unplaced.job, reason)) touched.insert(unplaced.job);
  }
}

void SnapshotHub::Touch(const JobId& job) {
  Callbacks callbacks;
  {
    MutexLock lock(mutex_);
    CollectSubscribers(job, callbacks);
  }
  for (auto& callback : callbacks) callback();
}

void SnapshotHub::CollectSubscribers(const JobId& job, Callbacks& out) const {
  auto it = subscribers_.find(job);
  if (it == subscribers_.end()) return;
  for (const auto& [id, callback] : it->second) out.push_back(callback);
}

absl::StatusOr<std::optional<SnapshotHub::Change>> SnapshotHub::NextChange(const JobId& job, int64_t revision) const {
  MutexLock lock(mutex_);
  if (revision > snapshot_->revision()) {
    return absl::OutOfRangeError(absl::StrCat("revision ", revision, " has not happened: this coordinator is at ",
                                              snapshot_->revision(), "; watch again without a revision"));
  }
  const JobView* view = snapshot_->FindJob(job);
  if (view && view->revision <= revision) return std::optional<Change>();
  auto it = std::upper_bound(changes_.begin(), changes_.end(), revision,
                             [](int64_t value, const Change& change) { return value < change.revision; });
  while (it != changes_.end() && it->id != job) ++it;
  if (it == changes_.end() || it->previous_revision > revision) {
    return absl::OutOfRangeError(absl::StrCat("job ", job.value(), " has changed after revision ", revision,
                                              " in ways that are no longer kept; watch again without a revision"));
  }
  return std::optional<Change>(*it);
}

int64_t SnapshotHub::Subscribe(const JobId& job, std::function<void()> changed) {
  MutexLock lock(mutex_);
  int64_t id = next_subscription_++;
  subscribers_[job].emplace(id, std::move(changed));
  return id;
}

void SnapshotHub::Unsubscribe(const JobId& job, int64_t subscription) {
  MutexLock lock(mutex_);
  auto it = subscribers_.find(job);
  if (it == subscribers_.end()) return;
  it->second.erase(subscription);
  if (it->second.empty()) subscribers_.erase(it);
}

}  // namespace llmctl::runtime
