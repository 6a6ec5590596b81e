// Store: what a coordinator knows, kept so that any crash leaves all of a batch or nothing.
//
// Entity records (job, node, job event, counters) with key columns and a versioned blob. Each is written whole:
// a change carries the record's new value, so applying a batch twice is harmless, and a batch whose outcome is
// unknown is simply committed again.
//
// One writer at a time, fenced by `term`: AcquireTerm() makes this coordinator the writer, and every commit of
// an older term is refused with FailedPrecondition, after which that process must end. Other errors:
// ResourceExhausted (disk full), Unavailable (I/O error, busy), PermissionDenied (read-only) leave the stored
// state as it was and may be retried; DataLoss and Internal mean that the store can no longer be trusted.
//
// Implementations are thread-safe: commits come from one thread, reads of events from others.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/ids.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl::store {

// Stored counters: ids and revisions never come from time or chance.
struct CounterRecord {
  int64_t next_job = 1;
  int64_t revision = 0;
  bool operator==(const CounterRecord&) const = default;
};

// Records are shared with the snapshots that readers see, hence pointers to const.
struct PutJob {
  std::shared_ptr<const Job> job;
};
// With its events.
struct EraseJob {
  JobId job;
};
struct PutNode {
  std::shared_ptr<const Node> node;
};
struct AppendEvent {
  JobId job;
  JobEventRecord event;
};
struct PutCounters {
  CounterRecord counters;
};
using Change = std::variant<PutJob, EraseJob, PutNode, AppendEvent, PutCounters>;

struct Records {
  CounterRecord counters;
  std::vector<Job> jobs;    // in the order of their ids
  std::vector<Node> nodes;  // in the order of their ids
};

class Store {
 public:
  virtual ~Store() = default;

  // Makes the caller the writer: term + 1, durable when this returns.
  virtual absl::StatusOr<int64_t> AcquireTerm() = 0;

  virtual absl::StatusOr<Records> Load() = 0;

  // All of `batch`, in order and durably, or nothing of it.
  virtual absl::Status Commit(int64_t term, const std::vector<Change>& batch) = 0;

  // Events of a job with sequence > after, oldest first, at most `limit`.
  virtual absl::StatusOr<std::vector<JobEventRecord>> ReadEvents(const JobId& job, int64_t after, int limit) = 0;
};

}  // namespace llmctl::store
