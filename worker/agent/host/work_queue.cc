#include "worker/agent/host/work_queue.h"

#include <utility>

namespace llmctl::agent {

WorkQueue::~WorkQueue() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void WorkQueue::Add(std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

void WorkQueue::Run() {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace llmctl::agent
