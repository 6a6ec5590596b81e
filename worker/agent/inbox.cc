#include "worker/agent/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "common/base/check.h"

namespace llmctl::agent {

Inbox::Inbox() : wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CHECK(wakeup_.valid()) << "no eventfd"; }

void Inbox::Put(Incoming item) {
  {
    MutexLock lock(mutex_);
    items_.push_back(std::move(item));
  }
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = ::write(wakeup_.get(), &one, sizeof one);
}

std::deque<Incoming> Inbox::TakeAll() {
  uint64_t count;
  [[maybe_unused]] ssize_t n = ::read(wakeup_.get(), &count, sizeof count);
  MutexLock lock(mutex_);
  return std::exchange(items_, {});
}

}  // namespace llmctl::agent
