// What other threads have for the agent's main loop; a poll() of descriptor() wakes it. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <variant>

#include "common/base/mutex.h"
#include "common/base/unique_fd.h"
#include "llmctl/v1/worker_link.pb.h"
#include "worker/agent/core/event.h"

namespace llmctl::agent {

struct LinkSaid {
  int64_t link = 0;
  v1::CoordinatorMessage message;
};
struct LinkClosed {
  int64_t link = 0;
  std::string why;
};
using Incoming = std::variant<LinkSaid, LinkClosed, Event>;

class Inbox {
 public:
  Inbox();

  void Put(Incoming item);
  std::deque<Incoming> TakeAll();
  int descriptor() const { return wakeup_.get(); }

 private:
  const UniqueFd wakeup_;  // eventfd
  Mutex mutex_;
  std::deque<Incoming> items_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::agent
