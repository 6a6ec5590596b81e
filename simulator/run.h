// One seed: a world, its faults, then peace, and what must hold in both.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "simulator/simulation.h"

namespace llmctl::simulator {

struct RunOptions {
  uint64_t seed = 1;
  Mutant mutant = Mutant::kNone;
  bool print_trace = false;
  std::set<int> left_out;  // intrusions that do not happen
  int intrusions = 0;      // so many; 0: as many as it takes
  bool clocks_jump = true;  // wall clocks; nothing may depend on it
};

struct Outcome {
  std::string violation;  // empty: all invariants held and the world came to rest in time
  uint64_t trace_hash = 0;
  int64_t actions = 0;
  absl::Duration simulated;
  ProbeCounts probes{};
  std::vector<int64_t> events;  // of the coordinators' core, by kind
  // ---- what the schedule was made of ----
  int nodes = 0;
  int jobs = 0;
  int fault_kinds = 0;
  int intrusions = 0;
};

// What every schedule has at least.
inline constexpr int kNodesLeast = 4;
inline constexpr int kJobsLeast = 3;
inline constexpr int kFaultKindsLeast = 3;
inline constexpr int64_t kEventsLeast = 200;

Outcome RunSeed(const RunOptions& options);

}  // namespace llmctl::simulator
