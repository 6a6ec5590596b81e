// One seed: a world, its faults, then peace, and what must hold in both.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "simulator/simulation.h"

namespace llmctl::simulator {

struct RunOptions {
  uint64_t seed = 1;
  Mutant mutant = Mutant::kNone;
  bool print_trace = false;
};

struct Outcome {
  std::string violation;  // empty: all invariants held and the world came to rest in time
  uint64_t trace_hash = 0;
  int64_t actions = 0;
  absl::Duration simulated;
  std::map<std::string, int64_t> probes;
};

Outcome RunSeed(const RunOptions& options);

}  // namespace llmctl::simulator
