// HangWatch: does a job still get anywhere?
//
// A job hangs when none of its ranks does: each has been at the same thing for longer than that thing is allowed to
// take. What that is, the job's own past says:
//
//   step        hangAfter, but at least twice the 99th percentile of the last steps; without hangAfter, five times that
//               percentile, at least a minute; while no step of the job is known, as long as a first one
//   first step, first validation, first checkpoint of an attempt    ten minutes, or ten times hangAfter; these open
//               files, grow memory and compile
//   later validations and checkpoints    five times the longest so far, at least as long as a step
//   start       less than the core's own deadline for it, so that the verdict names the rank
//   waiting for a commit    for ever: that is the coordinator's own doing
//
// One rank that is within its limit is enough for all: the others wait for it. A job counts as hanging no earlier than
// a limit after this watch has first heard of the attempt, or has heard of it again after a silence: while no
// coordinator was there, or it stood still, ranks may have waited for it. A coordinator that has just started knows of
// no steps: how long they take it hears with the next one.
//
// Pure: `now` is an argument. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/instant.h"
#include "coordinator/runtime/rank_pulse.h"

namespace llmctl::runtime {

// The durations of the last steps of a job.
class StepHistory {
 public:
  static constexpr size_t kKept = 256;

  void Add(double seconds);
  // The smallest duration that at least `share` of the steps do not exceed; zero without any.
  absl::Duration Percentile(double share) const;
  bool empty() const { return steps_.empty(); }

 private:
  std::deque<double> steps_;
};

struct HangLimits {
  absl::Duration step;        // `first`, while no step is known
  absl::Duration first;       // of something that this attempt has not done before
  absl::Duration validation;  // zero: the attempt has had none
  absl::Duration checkpoint;
};
// `hang_after` zero: not given. The longest of this job so far; zero: none yet.
HangLimits LimitsOf(const StepHistory& steps, absl::Duration hang_after, absl::Duration longest_validation,
                    absl::Duration longest_checkpoint);

// How long the rank has been at what it does, and how long it may; infinite: as long as it likes.
struct Patience {
  absl::Duration age;
  absl::Duration limit;
};
Patience PatienceWith(const RankPulse& pulse, const HangLimits& limits);

class HangWatch {
 public:
  struct Suspicion {
    GenerationId generation;
    int64_t step = 0;  // the most that any rank has done
    std::map<int, std::string> activities;  // by rank
    std::string text;  // "no step was finished for 31.2 s, and 30 s are allowed"
  };

  // What is known of the job besides the pulses.
  struct JobFacts {
    absl::Duration hang_after = absl::ZeroDuration();  // zero: not given
    std::set<int> ended;                               // ranks: nobody waits for them
  };

  // `heartbeats`: how long hosts are silent between two.
  explicit HangWatch(absl::Duration heartbeats);

  // Rank 0 has finished a step that took so long.
  void AddStep(const GenerationId& generation, double seconds);
  // Pulses of one host about one generation. A suspicion comes once; the next one after Dismiss().
  std::optional<Suspicion> Observe(const std::vector<RankPulse>& pulses, const JobFacts& facts, Instant now);
  // A look at the ranks has shown that it was none.
  void Dismiss(const GenerationId& generation, Instant now);
  void Forget(const JobId& job) { jobs_.erase(job); }

 private:
  struct Seen {
    RankPulse pulse;
    Instant at;
  };
  struct Job {
    int64_t generation = 0;
    Instant since;  // when the generation was first heard of, or again after a silence
    Instant heard;  // the last pulse
    std::map<int, Seen> ranks;
    bool suspected = false;
    // Of all attempts: how long things take is the job's own.
    StepHistory steps;
    absl::Duration longest_validation = absl::ZeroDuration();
    absl::Duration longest_checkpoint = absl::ZeroDuration();
  };
  Job& Of(const GenerationId& generation, Instant now);

  const absl::Duration fresh_;  // a pulse that is older says nothing about now: its host's lease is running out
  std::map<JobId, Job> jobs_;
};

}  // namespace llmctl::runtime
