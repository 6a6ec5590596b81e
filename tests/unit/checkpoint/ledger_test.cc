#include "worker/engine/checkpoint/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Ledger, OneRunIsOneSegmentHoweverManySteps) {
  Ledger ledger;
  for (int step = 0; step < 100; ++step) ledger.Append("s", 1, 8);

  EXPECT_THAT(ledger.segments(), ElementsAre(LedgerSegment{"s", 0, 799, 1, {}}));
  EXPECT_EQ(ledger.next_sample(), 800);
}

TEST(Ledger, ANewGenerationOrSamplerBeginsASegment) {
  Ledger ledger;
  ledger.Append("s", 1, 8);
  ledger.Append("s", 2, 8);
  ledger.Append("t", 2, 8);

  EXPECT_THAT(ledger.segments(), ElementsAre(LedgerSegment{"s", 0, 7, 1, {}}, LedgerSegment{"s", 8, 15, 2, {}},
                                             LedgerSegment{"t", 16, 23, 2, {}}));
  EXPECT_TRUE(Ledger::Check(ledger.segments()).ok());
}

TEST(Ledger, SkippedSamplesAreConsumedAndListed) {
  Ledger ledger;
  ledger.Append("s", 1, 8);
  ledger.AppendSkipped("s", 1, 8);
  ledger.AppendSkipped("s", 1, 8);
  ledger.Append("s", 1, 8);
  ledger.AppendSkipped("s", 1, 8);

  EXPECT_THAT(ledger.segments(), ElementsAre(LedgerSegment{"s", 0, 39, 1, {{8, 23}, {32, 39}}}));
  EXPECT_TRUE(Ledger::Check(ledger.segments()).ok());
}

TEST(Ledger, CheckFindsWhatWouldLoseOrRepeatSamples) {
  auto problem = [](std::vector<LedgerSegment> segments) { return std::string(Ledger::Check(segments).message()); };

  EXPECT_THAT(problem({{"s", 1, 7, 1, {}}}), HasSubstr("ledger segment 0: starts at sample 1, expected 0"));
  EXPECT_THAT(problem({{"s", 0, 7, 1, {}}, {"s", 9, 15, 2, {}}}),
              HasSubstr("segment 1: starts at sample 9, expected 8"));
  EXPECT_THAT(problem({{"s", 0, 7, 1, {}}, {"s", 7, 15, 2, {}}}),
              HasSubstr("segment 1: starts at sample 7, expected 8"));
  EXPECT_THAT(problem({{"s", 0, 7, 2, {}}, {"s", 8, 15, 1, {}}}), HasSubstr("generation 1 follows generation 2"));
  EXPECT_THAT(problem({{"s", 0, -1, 1, {}}}), HasSubstr("before its start"));
  EXPECT_THAT(problem({{"s", 0, 7, 1, {{5, 8}}}}), HasSubstr("skip [5, 8]"));
  EXPECT_THAT(problem({{"s", 0, 7, 1, {{5, 6}, {6, 7}}}}), HasSubstr("skip [6, 7]"));
}

}  // namespace
}  // namespace llmctl::checkpoint
