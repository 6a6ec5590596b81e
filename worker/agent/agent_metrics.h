// What an agent tells Prometheus: its link, its ranks by phase, and the newest figures of jobs (rank 0's host). A
// job's series stay for five minutes after its last rank here, so that a scrape sees the last figures; `attempt` and
// `rank` are never labels.
//
// Written by the main loop, rendered on a server thread. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"

#include "common/base/mutex.h"
#include "worker/agent/core/state.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

class AgentMetrics {
 public:
  // Counts as they are now; drops the series of jobs that have been gone for long. `now` is monotonic.
  void Publish(const State& state, absl::Duration now);
  void RecordProgress(const JobId& job, const contract::Progress& progress);
  void CountPersistFailure();

  std::string Render() const;

 private:
  struct Figures {
    contract::Progress progress;
    std::optional<absl::Duration> ended_at;  // monotonic; none while a rank of the job is here
  };

  mutable Mutex mutex_;
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<RankPhase, int> ranks_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, Figures> figures_ ABSL_GUARDED_BY(mutex_);
  int standbys_ready_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t standby_memory_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t outbox_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t persist_failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace llmctl::agent
