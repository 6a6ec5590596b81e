#include "coordinator/runtime/reply_book.h"

#include <utility>

namespace llmctl::runtime {

core::RequestId ReplyBook::Enter(Done done) {
  MutexLock lock(mutex_);
  core::RequestId request = next_++;
  waiting_.emplace(request, std::move(done));
  return request;
}

void ReplyBook::Answer(core::RequestId request, const Reply& reply) {
  Done done;
  {
    MutexLock lock(mutex_);
    auto it = waiting_.find(request);
    if (it == waiting_.end()) return;
    done = std::move(it->second);
    waiting_.erase(it);
  }
  done(reply);
}

void ReplyBook::Close(const absl::Status& status) {
  std::map<core::RequestId, Done> all;
  {
    MutexLock lock(mutex_);
    all.swap(waiting_);
  }
  for (auto& [request, done] : all) done({.status = status});
}

}  // namespace llmctl::runtime
