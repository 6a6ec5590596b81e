// A store in memory whose commits and reads wait at a gate, as for a disk that stands still, or fail as told: what the
// runtime does meanwhile can be seen.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/store/store.h"

namespace llmctl::store {

class GatedStore final : public Store {
 public:
  absl::StatusOr<int64_t> AcquireTerm() override { return 1; }
  absl::StatusOr<Records> Load() override {
    MutexLock lock(mutex_);
    return records_;
  }
  absl::StatusOr<std::vector<CrashRecord>> ReadCrashes() override { return std::vector<CrashRecord>{}; }
  absl::Status Backup(const std::string&) override { return absl::UnimplementedError("it has no file"); }
  absl::StatusOr<std::vector<JobEventRecord>> ReadEvents(const JobId&, int64_t, int) override {
    MutexLock lock(mutex_);
    ++reads_;
    changed_.NotifyAll();
    while (closed_) changed_.Wait(mutex_);
    return std::vector<JobEventRecord>{};
  }

  absl::Status Commit(int64_t, const std::vector<Change>& batch) override {
    MutexLock lock(mutex_);
    ++entered_;
    changed_.NotifyAll();
    while (closed_) changed_.Wait(mutex_);
    if (outcomes_.empty()) return absl::OkStatus();
    absl::Status outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return outcome;
  }

  // What a coordinator finds in it at its start.
  void Preload(Records records) {
    MutexLock lock(mutex_);
    records_ = std::move(records);
  }
  void CloseGate() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  void OpenGate() {
    MutexLock lock(mutex_);
    closed_ = false;
    changed_.NotifyAll();
  }
  // The next commits end so.
  void Fail(std::deque<absl::Status> outcomes) {
    MutexLock lock(mutex_);
    outcomes_ = std::move(outcomes);
  }
  // Returns once `count` commits have begun.
  void AwaitCommits(int count) {
    MutexLock lock(mutex_);
    while (entered_ < count) changed_.Wait(mutex_);
  }
  void AwaitReads(int count) {
    MutexLock lock(mutex_);
    while (reads_ < count) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int entered_ ABSL_GUARDED_BY(mutex_) = 0;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Status> outcomes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::store
