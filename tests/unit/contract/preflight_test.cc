#include "worker/contract/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::contract {
namespace {

using ::testing::HasSubstr;

TEST(Preflight, ComesBackAsItWasWritten) {
  Preflight preflight = Summarize({{"matmul", "passed", 0.5, 250.0, "GFLOP/s", ""},
                                   {"memory", "failed", 0, 0, "GB/s", "word 3: wrote 1, read 2"},
                                   {"disk", "failed", 0, 0, "MB/s", "full"}});

  absl::StatusOr<Preflight> read = DecodePreflight(EncodePreflight(preflight));

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, preflight);
  EXPECT_FALSE(read->passed);
  EXPECT_EQ(read->failure, "memory: word 3: wrote 1, read 2");
}

TEST(Preflight, SkippedChecksDoNotFailIt) {
  EXPECT_TRUE(Summarize({{"devices", "skipped", 0, 0, "", "no such build"}, {"disk", "passed"}}).passed);
}

TEST(Preflight, OfAnotherProgramIsRefused) {
  EXPECT_THAT(std::string(DecodePreflight("Segmentation fault").status().message()), HasSubstr("Segmentation"));
  EXPECT_FALSE(DecodePreflight("{\"passed\": true}").ok());
}

}  // namespace
}  // namespace llmctl::contract
