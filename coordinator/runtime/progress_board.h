// ProgressBoard: the newest figures of each job. Live, not durable, and no business of the core's.
//
// A job's progress is what rank 0 last reported. Reports of a generation older than the newest seen are dropped.
// A short ring of step times gives the estimate of the time left: the mean of the last steps follows a changed
// layout within a ring, and one slow step does not upset it.
//
// Thread-safe: reports come from link threads, reads from all others.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "common/base/mutex.h"

namespace llmctl::runtime {

struct Progress {
  int64_t step = 0;
  int64_t steps = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  int64_t tokens = 0;
  double step_seconds = 0;
  // Newest; NaN before the first.
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  int64_t validation_step = 0;
  // Filled in by the board; NaN while unknown.
  double eta_seconds = std::numeric_limits<double>::quiet_NaN();
};

class ProgressBoard {
 public:
  // True if it is news worth telling watchers: at most two a second for a job.
  bool Report(const GenerationId& generation, const Progress& progress, Instant now);
  std::optional<Progress> Newest(const JobId& job) const;
  void Forget(const JobId& job);

 private:
  struct Entry {
    int64_t generation = 0;
    Progress newest;
    std::deque<double> step_seconds;
    absl::Duration told = -absl::InfiniteDuration();
  };

  mutable Mutex mutex_;
  std::map<JobId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
