#include "worker/data/perplexity/length_balance.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "common/base/rng.h"

namespace llmctl::data {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LengthHistogram HistogramOf(const LengthBalanceSettings& settings, std::vector<uint64_t> tokens) {
  LengthHistogram histogram(settings);
  histogram.tokens = std::move(tokens);
  return histogram;
}

std::vector<double> Rates(const LengthPlan& plan) {
  std::vector<double> rates;
  for (const LengthRate& rate : plan.rates) rates.push_back(rate.rate);
  return rates;
}

TEST(LengthBalance, BucketsBeginAtTheirEdge) {
  LengthBalanceSettings settings = {.edges = {10, 100}, .weights = {1, 1, 1}};
  LengthHistogram histogram(settings);
  for (uint64_t tokens : {0, 9, 10, 99, 100, 5000}) histogram.Add(settings, tokens);
  EXPECT_THAT(histogram.documents, ElementsAre(2, 2, 2));
  EXPECT_THAT(histogram.tokens, ElementsAre(9, 109, 5100));
  LengthHistogram twice = histogram;
  twice.Merge(histogram);
  EXPECT_THAT(twice.tokens, ElementsAre(18, 218, 10200));
}

TEST(LengthBalance, ScarcestBucketDecidesHowMuchIsKept) {
  LengthBalanceSettings settings = {.edges = {10, 100}, .weights = {1, 2, 1}};
  auto plan = PlanLengths(HistogramOf(settings, {1000, 1000, 4000}), settings);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Rates(*plan), ElementsAre(0.5, 1, 0.125));
  EXPECT_THAT(plan->shares, ElementsAre(0.25, 0.5, 0.25));
  EXPECT_EQ(plan->tokens_expected, 2000);
  EXPECT_THAT(plan->short_of, IsEmpty());
}

TEST(LengthBalance, CopiesMakeUpForScarceBuckets) {
  LengthBalanceSettings settings = {.edges = {10}, .weights = {1, 1}, .repeat_max = 3};
  auto plan = PlanLengths(HistogramOf(settings, {100, 900}), settings);
  EXPECT_THAT(Rates(*plan), ElementsAre(3, DoubleNear(1.0 / 3, 1e-12)));
  settings.repeat_max = 20;
  plan = PlanLengths(HistogramOf(settings, {100, 900}), settings);
  EXPECT_THAT(Rates(*plan), ElementsAre(20, DoubleNear(20.0 / 9, 1e-12)));
}

TEST(LengthBalance, TargetIsMetByThoseThatCan) {
  LengthBalanceSettings settings = {.edges = {10, 100}, .weights = {1, 1, 2}, .tokens_target = 4000};
  auto plan = PlanLengths(HistogramOf(settings, {500, 3000, 8000}), settings);
  // The first can give 500 of 1000; the others share 3500 as 1 to 2.
  EXPECT_THAT(Rates(*plan), ElementsAre(1, DoubleNear(3500.0 / 3 / 3000, 1e-12), DoubleNear(7000.0 / 3 / 8000, 1e-12)));
  EXPECT_NEAR(plan->tokens_expected, 4000, 1e-9);
  EXPECT_THAT(plan->short_of, ElementsAre(0));
  settings.tokens_target = 1000000;
  plan = PlanLengths(HistogramOf(settings, {500, 3000, 8000}), settings);
  EXPECT_THAT(Rates(*plan), ElementsAre(1, 1, 1)) << "there is no more";
  EXPECT_THAT(plan->short_of, ElementsAre(0, 1, 2));
}

TEST(LengthBalance, BucketsWithoutWeightOrDocuments) {
  LengthBalanceSettings settings = {.edges = {10, 100}, .weights = {0, 1, 1}};
  auto plan = PlanLengths(HistogramOf(settings, {500, 300, 0}), settings);
  EXPECT_THAT(Rates(*plan), ElementsAre(0, 1, 0));
  EXPECT_THAT(plan->short_of, ElementsAre(2));
  EXPECT_EQ(PlanLengths(HistogramOf(settings, {500, 0, 0}), settings).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanLengths(HistogramOf({.edges = {}, .weights = {1}}, {500}), settings).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LengthBalance, DocumentsFollowTheRates) {
  LengthBalanceSettings settings = {.edges = {100, 1000}, .weights = {1, 1, 1}, .repeat_max = 1.5};
  SeededRng rng(9);
  LengthHistogram histogram(settings);
  std::vector<uint64_t> lengths;
  for (int i = 0; i < 30000; ++i) {
    lengths.push_back(1 + static_cast<uint64_t>(std::exp(rng.Uniform() * 9)));
    histogram.Add(settings, lengths.back());
  }
  auto plan = PlanLengths(histogram, settings);
  LengthHistogram kept(settings);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t bucket = LengthBucketOf(settings, lengths[i]);
    const uint32_t copies = CopiesOf(*plan, /*key=*/1, bucket, absl::StrCat("document ", i));
    EXPECT_LE(copies, 2u);
    EXPECT_EQ(copies, CopiesOf(*plan, 1, bucket, absl::StrCat("document ", i)));
    for (uint32_t copy = 0; copy < copies; ++copy) kept.Add(settings, lengths[i]);
  }
  const double total = kept.tokens[0] + kept.tokens[1] + kept.tokens[2];
  EXPECT_NEAR(total / plan->tokens_expected, 1, 0.03);
  for (uint64_t tokens : kept.tokens) EXPECT_NEAR(tokens / total, 1.0 / 3, 0.02);
}

TEST(LengthBalance, WholeRatesLeaveNothingToChance) {
  LengthBalanceSettings settings = {.edges = {10}, .weights = {1, 1}, .repeat_max = 2};
  auto plan = PlanLengths(HistogramOf(settings, {100, 200}), settings);
  ASSERT_THAT(Rates(*plan), ElementsAre(2, 1));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(CopiesOf(*plan, i, 0, "x"), 2u);
    EXPECT_EQ(CopiesOf(*plan, i, 1, "x"), 1u);
  }
}

TEST(LengthBalance, AnotherKeyDrawsAgain) {
  LengthBalanceSettings settings = {.edges = {10}, .weights = {1, 1}};
  auto plan = PlanLengths(HistogramOf(settings, {100, 200}), settings);
  int differing = 0;
  for (int i = 0; i < 1000; ++i) {
    differing += CopiesOf(*plan, 1, 1, absl::StrCat(i)) != CopiesOf(*plan, 2, 1, absl::StrCat(i));
  }
  EXPECT_NEAR(differing, 500, 100);
}

TEST(LengthBalanceSettings, AllFaultsAreInOneMessage) {
  LengthBalanceSettings settings = {.edges = {10, 10}, .weights = {-1}, .repeat_max = 0, .tokens_target = 0};
  std::string message(settings.Validate().message());
  for (const char* fault : {"edges: 10 comes after 10", "weights: expected 3", "weights: -1", "repeat_max is 0",
                            "tokens_target is 0"}) {
    EXPECT_THAT(message, HasSubstr(fault));
  }
}

}  // namespace
}  // namespace llmctl::data
