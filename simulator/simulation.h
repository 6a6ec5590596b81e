// What all parts of the simulated world share: virtual time, one seeded source of chance, and the journal.
//
// A run is a function of its seed: parts act only from scheduled actions, in order of (time, number), and draw chance
// only from here. The journal's hash covers every traced line, so two runs of a seed can be compared by one number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/rng.h"

namespace llmctl::simulator {

// A fault of the program itself, put into the shells around the cores: the checkers must notice it.
enum class Mutant {
  kNone,
  kForgetCounters,      // attempt and generation are not stored
  kSendBeforePersist,   // commands leave before their records are durable
  kAdoptOldGenerations, // offers of fenced writers pass as the newest generation's
  kReleaseTooEarly,     // a stop is answered before the processes have ended
  kLoseIdempotency,     // keys of submissions are dropped on the way in
  kConfirmTooEarly,     // heartbeats are answered before what came earlier is durable
  kHideShims,           // a Hello says nothing of the processes that a host still has
  kGrantLeaseLate,      // a new lease begins when the welcome is durable, not with the Hello
  kLoseJobRecords,      // now and then a job's record is not written
};

class Simulation {
 public:
  Simulation(uint64_t seed, Mutant mutant, bool print_trace);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // ---- time ----
  Instant now() const { return now_; }
  void After(absl::Duration delay, std::function<void()> action);
  // Runs the next action; false when there is none or the run has failed.
  bool RunNext();

  // ---- chance ----
  bool Chance(double probability) { return rng_.Uniform() < probability; }
  absl::Duration Between(absl::Duration low, absl::Duration high) { return low + (high - low) * rng_.Uniform(); }
  int Pick(int count) { return static_cast<int>(rng_.Below(static_cast<uint64_t>(count))); }

  // ---- journal ----
  void Trace(const std::string& line);
  // A fault or situation that the campaign must have reached.
  void Reached(const std::string& probe) { ++probes_[probe]; }
  void Violation(const std::string& text);

  bool failed() const { return !violation_.empty(); }
  const std::string& violation() const { return violation_; }
  uint64_t trace_hash() const { return trace_hash_; }
  int64_t actions() const { return actions_; }
  const std::map<std::string, int64_t>& probes() const { return probes_; }
  Mutant mutant() const { return mutant_; }

 private:
  struct Action {
    absl::Duration at;
    int64_t number = 0;
    std::function<void()> run;
  };
  struct Later {
    bool operator()(const Action& a, const Action& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };

  const Mutant mutant_;
  const bool print_trace_;
  SeededRng rng_;
  Instant now_;
  std::priority_queue<Action, std::vector<Action>, Later> agenda_;
  int64_t next_number_ = 0;
  int64_t actions_ = 0;
  uint64_t trace_hash_ = 0;
  std::string violation_;
  std::map<std::string, int64_t> probes_;
};

}  // namespace llmctl::simulator
