// ReplyBook: who waits for the answer to which request.
//
// The core knows a request by its number only; here the number finds the caller again. Each is answered once.
// Thread-safe; callers are answered without a lock held and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"

#include "common/base/mutex.h"
#include "coordinator/core/event.h"
#include "coordinator/runtime/snapshot.h"

namespace llmctl::runtime {

// What became of a user's request; durable when it arrives.
struct Reply {
  absl::Status status;
  JobView job;  // null job: failed, or deleted
  bool already_existed = false;
  int64_t revision = 0;
};

class ReplyBook {
 public:
  using Done = std::function<void(const Reply&)>;

  // After Close(), `done` comes at once.
  core::RequestId Enter(Done done);
  void Answer(core::RequestId request, const Reply& reply);
  // Answers all that wait, and who still enters.
  void Close(const absl::Status& status);

 private:
  Mutex mutex_;
  std::map<core::RequestId, Done> waiting_ ABSL_GUARDED_BY(mutex_);
  core::RequestId next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: not closed
};

}  // namespace llmctl::runtime
