// CommitThread: does the store's waiting for the disk, so that the core does not.
//
// One batch at a time; its outcome is posted to the inbox. Destruction waits for the batch in flight.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/base/mutex.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

class CommitThread {
 public:
  using Batch = std::shared_ptr<const std::vector<store::Change>>;
  // Runs on the commit thread.
  using Done = std::function<void(absl::Status outcome, absl::Duration took)>;

  CommitThread(store::Store& store, int64_t term, Done done);
  ~CommitThread();
  CommitThread(const CommitThread&) = delete;
  CommitThread& operator=(const CommitThread&) = delete;

  // The one before must be done.
  void Commit(Batch batch);

 private:
  void Run();

  store::Store& store_;
  const int64_t term_;
  const Done done_;

  Mutex mutex_;
  CondVar changed_;
  Batch next_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: runs on the fields above
};

}  // namespace llmctl::runtime
