// llm-simulator: looks for a seed that breaks the control plane, or replays one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"

#include "simulator/campaign.h"
#include "simulator/run.h"
#include "simulator/shrink.h"

namespace llmctl::simulator {
namespace {

constexpr char kAbout[] =
    "Runs the real cores of coordinator and agent, placement, the commit pipeline, leases and rendezvous keys in a\n"
    "deterministic world: a seeded network, disks, processes, clocks and people, and what goes wrong with each. After\n"
    "every event all invariants are checked; then the faults end, and the world must come to rest within a bound.\n\n"
    "A schedule follows from its seed alone. Of a hundred, one runs on the real SQLite store on a disk that forgets\n"
    "what was not synced.\n\n"
    "  llm-simulator --seeds=100000        look for a seed that breaks something; says how often each fault happened\n"
    "  llm-simulator --seed=42 --trace     say what happens in schedule 42\n\n"
    "A seed that fails is shrunk: faults and deeds (\"intrusions\", numbered) are left out while it still fails. The\n"
    "command that replays what remains is printed, and its trace.";

constexpr absl::Duration kShrinkLimit = absl::Seconds(60);

int Report(RunOptions options, const std::string& violation) {
  absl::PrintF("seed %d: %s\n", options.seed, violation);
  absl::PrintF("replay with: %s\n", ReplayCommand(options));
  Shrunk shrunk = Shrink(options, kShrinkLimit);
  absl::PrintF("shrunk to %d intrusions in %d tries: %s\n", shrunk.left, shrunk.tries, shrunk.violation);
  absl::PrintF("replay with: %s\n", ReplayCommand(shrunk.options));
  shrunk.options.print_trace = true;
  (void)RunApart(shrunk.options, kShrinkLimit);
  return 1;
}

int RunOne(const RunOptions& options) {
  Verdict verdict = RunApart(options, absl::Hours(1));
  if (verdict.violation.empty()) {
    Outcome outcome = RunSeed({.seed = options.seed,
                               .mutant = options.mutant,
                               .left_out = options.left_out,
                               .intrusions = options.intrusions});
    absl::PrintF("no violation; %d intrusions, %d actions, %s simulated, trace hash %016x\n", outcome.intrusions,
                 outcome.actions, absl::FormatDuration(outcome.simulated), outcome.trace_hash);
    return 0;
  }
  if (options.print_trace) {
    absl::PrintF("seed %d: %s\n", options.seed, verdict.violation);
    return 1;
  }
  return Report(options, verdict.violation);
}

int RunMany(const CampaignOptions& options, bool shrink) {
  CampaignResult result = RunCampaign(options);
  absl::PrintF("%s", Describe(result));
  if (result.failed_seed == 0) return 0;
  RunOptions failed{.seed = result.failed_seed, .mutant = options.mutant};
  if (shrink) return Report(failed, result.violation);
  absl::PrintF("seed %d: %s\nreplay with: %s\n", failed.seed, result.violation, ReplayCommand(failed));
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout);
  RunOptions one;
  uint64_t seeds = 1;
  int processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string left_out, mutant;
  app.add_option("--seed", one.seed, "The first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "How many seeds, from the first on")->capture_default_str();
  app.add_option("--processes", processes, "How many run at once")->capture_default_str();
  bool no_shrink = false;
  app.add_flag("--no-shrink", no_shrink, "Name a seed that fails, and no more (several seeds)");
  app.add_flag("--trace", one.print_trace, "Say what happens (one seed)");
  app.add_option("--leave-out", left_out, "Intrusions that do not happen, as in 1-4,7 (one seed)");
  app.add_option("--intrusions", one.intrusions, "So many intrusions; 0: as many as it takes (one seed)");
  app.add_option("--mutant", mutant, "Put a known fault into the program: the simulator must notice it");
  CLI11_PARSE(app, argc, argv);
  if (!ParseNumbers(left_out, &one.left_out)) {
    absl::FPrintF(stderr, "--leave-out: expected numbers as in 1-4,7, found \"%s\"\n", left_out);
    return 2;
  }
  if (!mutant.empty() && !ParseMutant(mutant, &one.mutant)) {
    absl::FPrintF(stderr, "--mutant: there is no \"%s\"; there are:%s\n", mutant, MutantNames());
    return 2;
  }
  if (seeds == 1) return RunOne(one);
  return RunMany({.first = one.seed, .seeds_most = seeds, .processes = processes, .mutant = one.mutant}, !no_shrink);
}

}  // namespace
}  // namespace llmctl::simulator

int main(int argc, char** argv) { return llmctl::simulator::Main(argc, argv); }
