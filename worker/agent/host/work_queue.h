// One thread for what may block for some seconds while the main loop must go on: log reads, evidence. (What may block
// for ever is for loose_threads.h.) Jobs run in order; those not begun when the queue is destroyed are dropped.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "common/base/mutex.h"

namespace llmctl::agent {

class WorkQueue {
 public:
  WorkQueue() : thread_([this] { Run(); }) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(std::function<void()> job);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace llmctl::agent
