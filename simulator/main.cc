// llm-simulator: replays one seed, or looks for a seed that breaks something.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"

#include "simulator/run.h"

namespace {

// For the signal handler alone: a failed CHECK aborts, and the seed must still be told.
volatile std::sig_atomic_t seed_under_way = 0;

void TellSeed(int) {
  std::fprintf(stderr, "aborted; replay with: llm-simulator --seed=%ld --trace\n", static_cast<long>(seed_under_way));
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the control plane in a deterministic world of faults.");
  uint64_t seed = 1;
  uint64_t seeds = 1;
  bool trace = false;
  app.add_option("--seed", seed, "The first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "How many seeds, from the first on")->capture_default_str();
  app.add_flag("--trace", trace, "Print what happens");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGABRT, TellSeed);

  std::map<std::string, int64_t> probes;
  int64_t actions = 0;
  for (uint64_t i = 0; i < seeds; ++i) {
    seed_under_way = static_cast<std::sig_atomic_t>(seed + i);
    llmctl::simulator::Outcome outcome =
        llmctl::simulator::RunSeed({.seed = seed + i, .print_trace = trace});
    actions += outcome.actions;
    for (const auto& [probe, count] : outcome.probes) probes[probe] += count;
    if (!outcome.violation.empty()) {
      absl::PrintF("seed %d: %s\n", seed + i, outcome.violation);
      absl::PrintF("replay with: llm-simulator --seed=%d --trace\n", seed + i);
      return 1;
    }
    if (seeds == 1) absl::PrintF("trace hash %016x\n", outcome.trace_hash);
  }
  absl::PrintF("%d seeds, %d actions, no violation\n", seeds, actions);
  for (const auto& [probe, count] : probes) absl::PrintF("%9d  %s\n", count, probe);
  return 0;
}
