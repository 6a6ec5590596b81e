// What all parts of the simulated world share: virtual time, one seeded source of chance, and the journal.
//
// A run is a function of its seed: parts act only from scheduled actions, in order of (time, number), and draw chance
// only from here. The journal's hash covers every traced fact, so two runs of a seed can be compared by one number.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "simulator/dice.h"
#include "simulator/mutants.h"
#include "simulator/probes.h"

namespace llmctl::simulator {

class Simulation {
 public:
  using Action = absl::AnyInvocable<void()>;

  Simulation(uint64_t seed, Mutant mutant, bool print_trace);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // ---- time: the true one, which no part of the world can read but through its own clock ----
  absl::Duration now() const { return absl::Nanoseconds(now_); }
  void After(absl::Duration delay, Action action);
  // Runs the next action; false when there is none or the run has failed.
  bool RunNext();

  Dice& dice() { return dice_; }

  // ---- journal ----
  // `facts` identify what happened; `line` (a callable) says it in words, and is only called when someone reads them.
  template <typename Line>
  void Trace(std::initializer_list<int64_t> facts, Line&& line) {
    for (int64_t fact : facts) Mix(static_cast<uint64_t>(fact));
    Mix(static_cast<uint64_t>(now_));
    if (print_trace_) Print(line());
  }
  bool tracing() const { return print_trace_; }
  void Reached(Probe probe) {
    ++probes_[static_cast<size_t>(probe)];
    if (print_trace_ && KindOf(probe) != ProbeKind::kSituation) Print(std::string("--- ") + ProbeName(probe));
  }
  void Violation(const std::string& text);

  bool failed() const { return !violation_.empty(); }
  const std::string& violation() const { return violation_; }
  uint64_t trace_hash() const { return trace_hash_; }
  int64_t actions() const { return actions_; }
  const ProbeCounts& probes() const { return probes_; }
  // Kinds of faults that have happened so far.
  int FaultKinds() const;
  Mutant mutant() const { return mutant_; }
  bool Is(Mutant mutant) const { return mutant_ == mutant; }

 private:
  struct Entry {
    int64_t at = 0;
    uint32_t number = 0;
    uint32_t slot = 0;  // in held_
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };

  void Mix(uint64_t fact) { trace_hash_ = (trace_hash_ ^ fact) * 0x9e3779b97f4a7c15ull + (trace_hash_ >> 29); }
  void Print(const std::string& line) const;

  const Mutant mutant_;
  const bool print_trace_;
  Dice dice_;
  int64_t now_ = 0;  // nanoseconds
  // A heap of small entries: the actions themselves stay where they are, also while they run.
  std::vector<Entry> agenda_;
  std::deque<Action> held_;
  std::vector<uint32_t> free_slots_;
  uint32_t next_number_ = 0;
  int64_t actions_ = 0;
  uint64_t trace_hash_ = 0;
  std::string violation_;
  ProbeCounts probes_{};
};

}  // namespace llmctl::simulator
