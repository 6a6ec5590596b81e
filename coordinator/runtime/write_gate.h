// WriteGate: may users change anything right now? Closed with a reason while the store cannot commit (disk full,
// I/O error), and for good once the coordinator is stopping. Thread-safe.
#pragma once

#include <utility>

#include "absl/status/status.h"

#include "common/base/mutex.h"

namespace llmctl::runtime {

class WriteGate {
 public:
  absl::Status Check() const {
    MutexLock lock(mutex_);
    return stopping_.ok() ? refusal_ : stopping_;
  }
  void Close(absl::Status refusal) {
    MutexLock lock(mutex_);
    refusal_ = std::move(refusal);
  }
  void Open() { Close(absl::OkStatus()); }
  // Closed for good: the disk's recovery does not open it again.
  void Stop(absl::Status refusal) {
    MutexLock lock(mutex_);
    stopping_ = std::move(refusal);
  }

 private:
  mutable Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopping_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
