// Many seeded worlds of faults against the real cores of coordinator and agent: all invariants after every step, and
// rest within a bound once the faults are over.
//
// Goal: no schedule breaks the control plane. Method: seeds from 1 on, on all processors, up to SEEDS_MOST or as many
// as fit the time, but at least SEEDS_LEAST. Every schedule must have been worth it, and with enough of them every
// fault and every situation must have happened. A failure is shrunk, and prints the command that replays it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"

#include "simulator/campaign.h"
#include "simulator/run.h"
#include "simulator/shrink.h"

namespace llmctl::simulator {
namespace {

// After so many the rarest situation has happened some ten times.
constexpr uint64_t kSeedsForEveryFault = 20'000;
constexpr absl::Duration kTime = absl::Seconds(170);
constexpr absl::Duration kShrinkTime = absl::Seconds(30);

std::string Explain(uint64_t seed) {
  Shrunk shrunk = Shrink({.seed = seed}, kShrinkTime);
  shrunk.options.print_trace = true;
  (void)RunApart(shrunk.options, kShrinkTime);
  return "seed " + std::to_string(seed) + "; replay with: " + ReplayCommand({.seed = seed}) + "\nshrunk to " +
         std::to_string(shrunk.left) + " intrusions (" + shrunk.violation +
         "), traced above; replay with: " + ReplayCommand(shrunk.options);
}

TEST(Campaign, NoSeedBreaksAnInvariantAndEveryFaultHappens) {
  int processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  CampaignResult result = RunCampaign({.first = 1,
                                       .seeds_most = SEEDS_MOST,
                                       .time = kTime,
                                       .seeds_least = SEEDS_LEAST / static_cast<uint64_t>(processes),
                                       .processes = processes});
  std::printf("%s", Describe(result).c_str());

  ASSERT_EQ(result.violation, "") << Explain(result.failed_seed);
  EXPECT_TRUE(result.tally.Qualifies()) << "a schedule was not worth it";
  if (result.tally.seeds < kSeedsForEveryFault) return;
  for (size_t i = 0; i < kProbes; ++i) {
    EXPECT_GT(result.tally.probes[i], 0) << "the campaign never saw: " << ProbeName(static_cast<Probe>(i));
  }
}

// What the simulator has found and is repaired. Mutants put it back, so it shows if a seed no longer means what it did:
// then `llm-simulator --seeds=30000 --mutant=…` finds another.
TEST(Campaign, SeedsFindFaultsThatTheProgramHasHad) {
  struct Past {
    uint64_t seed;
    Mutant mutant;
  };
  for (const Past& past : {Past{21, Mutant::kLeaseRunsInCommit}, Past{1154, Mutant::kRepeatStartToAnother},
                           Past{4194, Mutant::kFreeReturned}}) {
    EXPECT_NE(RunApart({.seed = past.seed, .mutant = past.mutant}, kShrinkTime).violation, "")
        << MutantName(past.mutant);
    EXPECT_EQ(RunApart({.seed = past.seed}, kShrinkTime).violation, "") << past.seed;
  }
}

TEST(Campaign, ASeedIsTheSameRunEveryTime) {
  for (uint64_t seed : {3u, 17u, 66u, 277u}) {
    Outcome first = RunSeed({.seed = seed});
    Outcome second = RunSeed({.seed = seed});

    EXPECT_EQ(first.trace_hash, second.trace_hash);
    EXPECT_EQ(first.actions, second.actions);
  }
  EXPECT_NE(RunSeed({.seed = 3}).trace_hash, RunSeed({.seed = 4}).trace_hash);
}

bool SawQuarantine(const Outcome& outcome) {
  for (Probe probe : {Probe::kNodeQuarantined, Probe::kNodeInBurnIn, Probe::kNodeOnParole}) {
    if (outcome.probes[static_cast<size_t>(probe)] > 0) return true;
  }
  return false;
}

TEST(Campaign, WallClocksDecideOnlyHowLongTheLedgerHoldsAGrudge) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Outcome jumping = RunSeed({.seed = seed});
    Outcome steady = RunSeed({.seed = seed, .clocks_jump = false});
    // Strikes decay by wall time: a clock that jumps may forgive.
    if (SawQuarantine(jumping) || SawQuarantine(steady)) continue;

    ++compared;
    EXPECT_EQ(jumping.trace_hash, steady.trace_hash) << "seed " << seed;
  }
  EXPECT_GT(compared, 20);
}

TEST(Campaign, AFailureIsShrunkToWhatItNeeds) {
  RunOptions options{.seed = 1, .mutant = Mutant::kLoseIdempotency};
  while (RunSeed(options).violation.empty()) ++options.seed;
  Outcome whole = RunSeed(options);

  Shrunk shrunk = Shrink(options, kShrinkTime);

  EXPECT_LE(shrunk.left, 6) << "of " << whole.intrusions;
  EXPECT_NE(RunSeed(shrunk.options).violation, "");
  EXPECT_THAT(ReplayCommand(shrunk.options), testing::HasSubstr("--leave-out="));
}

TEST(Campaign, NumbersOfIntrusionsAreWrittenAsRanges) {
  std::set<int> numbers = {0, 1, 2, 3, 7, 9, 10};

  EXPECT_EQ(FormatNumbers(numbers), "0-3,7,9-10");
  std::set<int> read;
  EXPECT_TRUE(ParseNumbers("0-3,7,9-10", &read));
  EXPECT_EQ(read, numbers);
  EXPECT_FALSE(ParseNumbers("1-2-3", &read));
  EXPECT_FALSE(ParseNumbers("x", &read));
}

}  // namespace
}  // namespace llmctl::simulator
