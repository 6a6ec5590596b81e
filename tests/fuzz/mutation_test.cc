// Every fuzz target, on its seeds and on a few thousand mutations of them, in every ordinary test run. A failure
// aborts within the target; the last line printed names it, and the seed is fixed, so it repeats.
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

// Not the seeds, which may be any bytes.
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

constexpr int kRounds = 10000;
constexpr uint64_t kSeed = 20240117;

class MutatedInput : public ::testing::TestWithParam<Target> {};

TEST_P(MutatedInput, IsAcceptedOrRefusedButNeverACrash) {
  const Target& target = GetParam();
  SeededRng rng(kSeed);
  for (const std::string& seed : target.seeds) target.run(seed);
  target.run("");
  std::string last;
  for (int round = 0; round < kRounds; ++round) {
    // Half of the time damage is added to damage, to get further from the seeds.
    const std::string& seed = target.seeds[rng.Below(target.seeds.size())];
    last = Mutate(rng.Below(2) == 0 || last.size() > 10000 ? seed : last, rng);
    target.run(last);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MutatedInput, ::testing::ValuesIn(AllTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace llmctl::fuzz
