// What the coordinator tells Prometheus.
//
// Histograms and counters are kept as things happen; everything that is a state (jobs by phase, hosts, figures of
// live jobs) is read from the snapshot when somebody scrapes, so a series disappears with what it described. Job
// series exist for live jobs and for five minutes after the end, at most `job_series_max` jobs, newest first;
// what is left out is counted.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"

#include "coordinator/runtime/progress_board.h"
#include "coordinator/runtime/rank_board.h"
#include "coordinator/runtime/snapshot.h"

namespace prometheus {
class Counter;
class Histogram;
class Registry;
}  // namespace prometheus

namespace llmctl::runtime {

class Metrics {
 public:
  struct Options {
    std::string version;
    int64_t term = 0;
    int job_series_max = 1000;
  };
  explicit Metrics(const Options& options);
  ~Metrics();

  void ObserveCommit(absl::Duration took, bool ok);
  void ObservePlan(absl::Duration took);
  void CountStall();
  void CountLeaseExpired();
  void CountHang();

  // The states that a scrape reads.
  struct Sources {
    const Snapshot& snapshot;
    const ProgressBoard& progress;
    const RankBoard& ranks;
    size_t quarantined = 0;     // entities kept apart (quarantine.h)
    bool takes_changes = true;  // false while the store cannot be written (write_gate.h)
  };
  // In the Prometheus text format.
  std::string Render(const Sources& sources, absl::Time now) const;

 private:
  const Options options_;
  const std::unique_ptr<prometheus::Registry> registry_;
  prometheus::Histogram& commit_seconds_;
  prometheus::Counter& commit_failures_;
  prometheus::Histogram& cycle_seconds_;
  prometheus::Counter& stalls_;
  prometheus::Counter& hangs_;
  prometheus::Counter& leases_expired_;
};

}  // namespace llmctl::runtime
