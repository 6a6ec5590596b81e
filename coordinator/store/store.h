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
// A record that cannot be read does not keep the others from being read: Load() gives a stand-in for it
// (model/stand_in.h) and the record itself in Records::damaged. One that was kept as damaged and can be read by now,
// by a later build, takes its place again. A record of a newer program is not damaged: Load() then fails with
// FailedPrecondition.
//
// Implementations are thread-safe: commits come from one thread, reads of events and backups from others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "coordinator/model/focus.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl::store {

// Stored counters: ids and revisions never come from time or chance.
// How far counters go up where an old state takes the place of a newer one, so that no number is handed out again.
// Ids, generations and terms: at ten thousand a second they would take more than a day to use up. Revisions, of which
// each submission makes several, go up by a thousand times as much.
inline constexpr int64_t kRestoreGap = 1'000'000'000;

struct CounterRecord {
  int64_t next_job = 1;
  int64_t revision = 0;
  bool operator==(const CounterRecord&) const = default;
};

// Records are shared with the snapshots that readers see, hence pointers to const.
struct PutJob {
  std::shared_ptr<const Job> job;
};
// With its events, and what is kept of it as damaged.
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
// How often the coordinator has crashed while it worked on something (coordinator/model/focus.h).
struct CrashRecord {
  std::string entity;  // "job j-17"
  int64_t count = 0;
  Focus::Stage stage = Focus::Stage::kStep;  // of the last one
  absl::Time last_time = absl::InfinitePast();
  bool operator==(const CrashRecord&) const = default;
};
struct PutCrash {
  CrashRecord crash;
};
struct EraseCrash {
  std::string entity;
};
// A record that could not be read, kept as it was for whoever can repair it.
struct DamagedRecord {
  std::string entity;
  std::string record;
  std::string reason;
  bool operator==(const DamagedRecord&) const = default;
};
// Kept already: nothing changes, as a later one would be its stand-in's.
struct PutDamaged {
  DamagedRecord damaged;
};
struct EraseDamaged {
  std::string entity;
};
using Change =
    std::variant<PutJob, EraseJob, PutNode, AppendEvent, PutCounters, PutCrash, EraseCrash, PutDamaged, EraseDamaged>;

// An entity is kept apart when the coordinator has crashed on it so often: the first time may have been chance.
inline constexpr int64_t kCrashesMax = 2;

struct Records {
  CounterRecord counters;
  std::vector<Job> jobs;    // in the order of their ids
  std::vector<Node> nodes;  // in the order of their ids
  // Nothing of these is stored by Load(): whoever loads commits it.
  std::vector<DamagedRecord> damaged;  // found now; their stand-ins are among the above
  std::vector<DamagedRecord> damaged_before;
  std::vector<Job> recovered;  // of damaged_before: can be read now, their stand-ins are among the above
};

class Store {
 public:
  virtual ~Store() = default;

  // Makes the caller the writer: term + 1, durable when this returns.
  virtual absl::StatusOr<int64_t> AcquireTerm() = 0;

  virtual absl::StatusOr<Records> Load() = 0;
  virtual absl::StatusOr<std::vector<CrashRecord>> ReadCrashes() = 0;

  // All of `batch`, in order and durably, or nothing of it.
  virtual absl::Status Commit(int64_t term, const std::vector<Change>& batch) = 0;

  // Events of a job with sequence > after, oldest first, at most `limit`.
  virtual absl::StatusOr<std::vector<JobEventRecord>> ReadEvents(const JobId& job, int64_t after, int limit) = 0;

  // Writes a consistent copy of the store as it is at some moment of the call into a new file, to be given to the
  // backend's restore. Commits go on meanwhile.
  virtual absl::Status Backup(const std::string& path) = 0;
};

}  // namespace llmctl::store
