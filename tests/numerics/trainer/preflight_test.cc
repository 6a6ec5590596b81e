// The checks of a host, on the host that runs the tests: they pass here, and fail where something is wrong.
#include "worker/trainer/preflight.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace llmctl::trainer {
namespace {

using ::testing::HasSubstr;

// Before any thread starts: see worker/engine/comm/gloo.h.
const int kFlightRecorderOff = setenv("TORCH_FR_BUFFER_SIZE", "0", 1);

void ExpectPassed(const contract::PreflightCheck& check) {
  EXPECT_EQ(check.outcome, "passed") << check.name << ": " << check.detail;
  EXPECT_GT(check.value, 0) << check.name;
  EXPECT_GT(check.seconds, 0) << check.name;
}

TEST(Preflight, PassesOnASoundHost) {
  TemporaryDirectory directory;

  contract::Preflight found = RunPreflight({.directory = directory.path(), .devices = 3});

  EXPECT_TRUE(found.passed) << found.failure;
  ASSERT_EQ(found.checks.size(), 4u);
  for (const contract::PreflightCheck& check : found.checks) ExpectPassed(check);
  EXPECT_EQ(found.checks[2].detail, "3 ranks");
}

TEST(Preflight, SaysThatDevicesItCannotReachWereNotTested) {
  TemporaryDirectory directory;

  contract::Preflight found = RunPreflight({.directory = directory.path(), .devices = 2, .device_kind = "cuda"});

  EXPECT_EQ(found.checks.at(0).outcome, "skipped");
  EXPECT_THAT(found.checks.at(0).detail, HasSubstr("2 devices of kind cuda were not tested"));
}

TEST(Preflight, DiskThatIsNotThereFails) {
  contract::Preflight found = RunPreflight({.directory = "/nonexistent", .devices = 1});

  EXPECT_FALSE(found.passed);
  EXPECT_THAT(found.failure, HasSubstr("disk: look at /nonexistent"));
}

}  // namespace
}  // namespace llmctl::trainer
