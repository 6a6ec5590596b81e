// StragglerWatch: which rank makes the others wait?
//
// In a synchronous job all ranks take the same time for a step, the slow and the fast; what tells them apart is the
// time they work and do not wait. For each window of some steps and seconds a rank's work per step is taken, and the
// median of its last windows is its figure: one slow window says nothing. A rank straggles when its figure is both well
// above the median of the others and outside their own scatter (median absolute deviation); it has recovered when it is
// near them again; both only after several comparisons in a row. It is compared with the others only: in a small job
// the slow rank itself would move the median.
//
// Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "coordinator/runtime/rank_pulse.h"

namespace llmctl::runtime {

struct RankSpeed {
  double seconds = 0;   // of work per step
  double slowness = 0;  // that over the median of the others
  bool straggler = false;
};

// By rank; `figures` are seconds of work per step. `before`: who straggled so far.
std::map<int, RankSpeed> CompareSpeeds(const std::map<int, double>& figures, const std::map<int, RankSpeed>& before);

class StragglerWatch {
 public:
  static constexpr size_t kWindows = 5;
  static constexpr int64_t kWindowSteps = 4;
  static constexpr absl::Duration kWindowLeast = absl::Seconds(1);
  static constexpr int kInARow = 3;

  // A rank that has begun to straggle, or has stopped to.
  struct Change {
    int rank = 0;
    std::string text;
  };
  std::vector<Change> Observe(const std::vector<RankPulse>& pulses, Instant now);
  // Empty while nothing is known; of the job's newest generation.
  const std::map<int, RankSpeed>& Speeds(const JobId& job) const;
  void Forget(const JobId& job) { jobs_.erase(job); }

 private:
  struct Rank {
    bool begun = false;
    bool moved = false;  // a window has ended since the last comparison
    int differs = 0;     // comparisons in a row that do not say what is said of it
    double busy_seconds = 0;  // where the window began
    int64_t steps = 0;
    Instant at;
    std::deque<double> windows;  // seconds of work per step
  };
  struct Job {
    int64_t generation = 0;
    std::map<int, Rank> ranks;
    std::map<int, RankSpeed> speeds;
  };
  static void CloseWindow(const RankPulse& pulse, Instant now, Rank& rank);
  // The work per step of each rank; empty unless all have a new window.
  static std::map<int, double> TakeFigures(Job& job);

  std::map<JobId, Job> jobs_;
};

}  // namespace llmctl::runtime
