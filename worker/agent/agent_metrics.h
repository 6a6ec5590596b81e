// What an agent tells Prometheus: its link, its ranks by phase, and the newest figures of live jobs (rank 0's
// host). A job's series end with the job; `attempt` and `rank` are never labels.
//
// Written by the main loop, rendered on a server thread. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/mutex.h"
#include "worker/agent/core/state.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

class AgentMetrics {
 public:
  // Counts as they are now; drops the series of jobs that are no longer here.
  void Publish(const State& state);
  void RecordProgress(const JobId& job, const contract::Progress& progress);
  void CountPersistFailure();

  std::string Render() const;

 private:
  mutable Mutex mutex_;
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<RankPhase, int> ranks_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, contract::Progress> progress_ ABSL_GUARDED_BY(mutex_);
  int64_t outbox_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t persist_failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace llmctl::agent
