#include "coordinator/runtime/reply_book.h"

#include <utility>

namespace llmctl::runtime {

core::RequestId ReplyBook::Enter(Done done) {
  core::RequestId request = 0;
  absl::Status closed;
  {
    MutexLock lock(mutex_);
    request = next_++;
    closed = closed_;
    if (closed.ok()) waiting_.emplace(request, std::move(done));
  }
  if (!closed.ok()) done({.status = closed});
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
    closed_ = status;
    all.swap(waiting_);
  }
  for (auto& [request, done] : all) done({.status = status});
}

}  // namespace llmctl::runtime
