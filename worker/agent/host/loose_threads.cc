#include "worker/agent/host/loose_threads.h"

#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace llmctl::agent {

// Outlives the object for as long as a thread does.
struct LooseThreads::Shared {
  Mutex mutex;
  std::map<std::string, std::deque<std::function<void()>>> waiting ABSL_GUARDED_BY(mutex);  // a thread for each key

  // Null: there is none, and the thread of the key ends.
  std::function<void()> Next(const std::string& key) {
    MutexLock lock(mutex);
    auto it = waiting.find(key);
    if (it->second.empty()) {
      waiting.erase(it);
      return nullptr;
    }
    std::function<void()> job = std::move(it->second.front());
    it->second.pop_front();
    return job;
  }
};

LooseThreads::LooseThreads(size_t threads_max) : threads_max_(threads_max), shared_(std::make_shared<Shared>()) {}

bool LooseThreads::Add(const std::string& key, std::function<void()> job) {
  MutexLock lock(shared_->mutex);
  auto it = shared_->waiting.find(key);
  if (it != shared_->waiting.end()) {
    it->second.push_back(std::move(job));
    return true;
  }
  if (shared_->waiting.size() >= threads_max_) return false;
  shared_->waiting[key].push_back(std::move(job));
  std::thread([shared = shared_, key] {
    while (std::function<void()> next = shared->Next(key)) next();
  }).detach();
  return true;
}

}  // namespace llmctl::agent
