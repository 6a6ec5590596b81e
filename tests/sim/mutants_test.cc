// Does the simulator notice? Each mutant is a fault put into the shells around the cores; a campaign that lets one
// pass proves nothing about the real program.
#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "simulator/campaign.h"

namespace llmctl::simulator {
namespace {

// From seed 1 on.
constexpr uint64_t kSeedsMost = 1000;

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaught) {
  int processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));

  CampaignResult result =
      RunCampaign({.seeds_most = kSeedsMost, .processes = processes, .mutant = GetParam()});

  EXPECT_NE(result.violation, "") << MutantName(GetParam()) << " passed " << kSeedsMost << " seeds";
  std::printf("%s: seed %lu: %s\n", MutantName(GetParam()).c_str(), static_cast<unsigned long>(result.failed_seed),
              result.violation.c_str());
}

std::string NameOf(const testing::TestParamInfo<Mutant>& info) {
  std::string name = MutantName(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutants,
    testing::Values(Mutant::kNoFencing, Mutant::kSendBeforePersist, Mutant::kLeaseFromSending, Mutant::kLoseIdempotency,
                    Mutant::kFreeTwice, Mutant::kReleaseTooEarly, Mutant::kApplyStalePlan, Mutant::kStartHalfGang,
                    Mutant::kForgetCancel, Mutant::kForgetCounters, Mutant::kLeaveTerminal,
                    Mutant::kAdoptOldGenerations, Mutant::kKeepBackoff, Mutant::kAdmitOldIncarnation,
                    Mutant::kDropOutbox, Mutant::kCommitWithoutTerm, Mutant::kAdoptTwice, Mutant::kConfirmTooEarly,
                    Mutant::kHideShims, Mutant::kLoseJobRecords, Mutant::kKeepRendezvous,
                    Mutant::kLeaseRunsInCommit),
    NameOf);

}  // namespace
}  // namespace llmctl::simulator
