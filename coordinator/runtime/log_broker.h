// LogBroker: brings together who asked for a piece of a log and the host that sends it, over another call.
//
// Every question is answered once: by the host, or with an error when its link is down, it stays silent, or the
// coordinator stops.
// Thread-safe; answers run on the thread that caused them and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "coordinator/runtime/host_links.h"

namespace llmctl::runtime {

struct LogPiece {
  std::string data;
  int64_t next_offset = 0;
  bool end = false;
};

class LogBroker {
 public:
  using Answer = std::function<void(absl::StatusOr<LogPiece>)>;

  LogBroker(const HostLinks& links, absl::Duration patience) : links_(links), patience_(patience) {}

  // `query` without its request id.
  void Ask(const NodeId& node, LogQuery query, Instant now, Answer answer);
  // False if nobody waits for it (any more).
  bool Deliver(const NodeId& node, int64_t request_id, absl::StatusOr<LogPiece> piece);
  // The coordinator itself stood still: answers may have come that nobody has read.
  void Extend(absl::Duration stall);
  // Answers what has waited too long.
  void Expire(Instant now);
  // Answers all that wait, and who asks after it.
  void Close(const absl::Status& status);

 private:
  struct Pending {
    NodeId node;
    absl::Duration deadline;  // monotonic
    Answer answer;
  };
  const HostLinks& links_;
  const absl::Duration patience_;

  Mutex mutex_;
  std::map<int64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK: not closed
};

}  // namespace llmctl::runtime
