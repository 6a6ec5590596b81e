// Does the simulator notice? Each mutant is a fault put into the shells around the cores; a campaign that lets one
// pass proves nothing about the real program.
#include <cstdint>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "simulator/run.h"

namespace llmctl::simulator {
namespace {

struct Case {
  const char* name;
  Mutant mutant;
  uint64_t seeds;  // within which it must be caught
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Mutants : public testing::TestWithParam<Case> {};

TEST_P(Mutants, AreCaught) {
  std::string violation;
  uint64_t seed = 0;
  while (violation.empty() && seed < GetParam().seeds) {
    violation = RunSeed({.seed = ++seed, .mutant = GetParam().mutant}).violation;
  }

  EXPECT_NE(violation, "") << GetParam().name << " passed " << seed << " seeds";
  RecordProperty("caught_by_seed", static_cast<int>(seed));
  RecordProperty("violation", violation);
}

INSTANTIATE_TEST_SUITE_P(All, Mutants,
                         testing::Values(Case{"ForgetCounters", Mutant::kForgetCounters, 50},
                                         Case{"SendBeforePersist", Mutant::kSendBeforePersist, 50},
                                         Case{"AdoptOldGenerations", Mutant::kAdoptOldGenerations, 200},
                                         Case{"ReleaseTooEarly", Mutant::kReleaseTooEarly, 500},
                                         Case{"LoseIdempotency", Mutant::kLoseIdempotency, 50},
                                         Case{"ConfirmTooEarly", Mutant::kConfirmTooEarly, 500},
                                         Case{"HideShims", Mutant::kHideShims, 500},
                                         Case{"GrantLeaseLate", Mutant::kGrantLeaseLate, 2000},
                                         Case{"LoseJobRecords", Mutant::kLoseJobRecords, 50}),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace llmctl::simulator
