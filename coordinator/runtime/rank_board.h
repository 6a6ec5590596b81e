// RankBoard: what the ranks of each job are doing, from their hosts' heartbeats; and the two questions that are asked
// of it all the time: does the job hang, does a rank straggle. Live, not durable, and no business of the core's: the
// core hears only of verdicts.
//
// Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "coordinator/runtime/hang_watch.h"
#include "coordinator/runtime/rank_pulse.h"
#include "coordinator/runtime/straggler_watch.h"

namespace llmctl::runtime {

struct LiveRank {
  std::string doing;  // for a person: "in the data loader"
  RankSpeed speed;
};

class RankBoard {
 public:
  // `heartbeats`: how long hosts are silent between two.
  explicit RankBoard(absl::Duration heartbeats);

  struct Findings {
    std::optional<HangWatch::Suspicion> suspicion;
    std::vector<StragglerWatch::Change> stragglers;
  };

  // Of one host about one generation, which is the job's live one.
  Findings Report(const std::vector<RankPulse>& pulses, const HangWatch::JobFacts& facts, Instant now);
  void AddStep(const GenerationId& generation, double seconds);
  void DismissSuspicion(const GenerationId& generation, Instant now);

  // By rank, of this generation; empty if nothing was heard of it for a while.
  std::map<int, LiveRank> Live(const GenerationId& generation, Instant now) const;
  // The greatest slowness of any rank; 0: not known.
  double Skew(const JobId& job) const;
  void Forget(const JobId& job);

 private:
  struct Heard {
    RankPulse pulse;
    Instant at;
  };

  const absl::Duration live_;  // what was heard longer ago is nothing to show

  mutable Mutex mutex_;
  HangWatch hangs_ ABSL_GUARDED_BY(mutex_);
  StragglerWatch stragglers_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, std::map<int, Heard>> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
