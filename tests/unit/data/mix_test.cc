#include "worker/data/mix/mix.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<GroupInfo> Groups(std::vector<std::pair<std::string, int64_t>> sizes) {
  std::vector<GroupInfo> out;
  for (auto& [name, tokens] : sizes) out.push_back({.name = name, .tokens = tokens});
  return out;
}

TEST(MixWeights, ProportionalIsWhatThereIs) {
  EXPECT_THAT(*MixWeights({}, Groups({{"a", 300}, {"b", 100}, {"c", 0}})), ElementsAre(0.75, 0.25, 0));
}

TEST(MixWeights, TemperatureRaisesTheSmall) {
  MixSettings settings{.method = MixMethod::kTemperature, .alpha = 0.5};
  // 10, 5 and 1 of 16.
  EXPECT_THAT(*MixWeights(settings, Groups({{"a", 100}, {"b", 25}, {"c", 1}, {"d", 0}})),
              ElementsAre(DoubleEq(0.625), DoubleEq(0.3125), DoubleEq(0.0625), 0));
  settings.alpha = 0;
  EXPECT_THAT(*MixWeights(settings, Groups({{"a", 100}, {"b", 1}, {"c", 0}})), ElementsAre(0.5, 0.5, 0));
}

TEST(MixWeights, UniMaxIsEvenUntilAGroupHasHadItsEpochs) {
  // Budget 1,200, at most 2 epochs. From the smallest: b has 50: an even 1200 / 4 = 300 is more than 2 * 50, so it
  // takes 100, and 1,100 are left for three; d has 200: 366.7 is less than 400, so it takes that; the last two share
  // the remaining 733.3.
  MixSettings settings{.method = MixMethod::kUniMax, .budget_tokens = 1200, .epochs_max = 2};
  EXPECT_THAT(*MixWeights(settings, Groups({{"a", 5000}, {"b", 50}, {"c", 900}, {"d", 200}})),
              ElementsAre(DoubleNear(1100.0 / 3600, 1e-12), DoubleNear(100.0 / 1200, 1e-12),
                          DoubleNear(1100.0 / 3600, 1e-12), DoubleNear(1100.0 / 3600, 1e-12)));
}

TEST(MixWeights, UniMaxGivesWhatThereIsWhenTheBudgetIsMore) {
  // Every group at its cap: shares as in proportional mixing.
  MixSettings settings{.method = MixMethod::kUniMax, .budget_tokens = 1000000, .epochs_max = 4};
  std::vector<GroupInfo> groups = Groups({{"a", 300}, {"b", 100}});
  std::vector<double> weights = *MixWeights(settings, groups);
  EXPECT_THAT(weights, ElementsAre(0.75, 0.25));
  EXPECT_THAT(Epochs(weights, groups, 1600), ElementsAre(4, 4));
}

TEST(MixWeights, ExplicitOnesAreOfGroupsOrOfSources) {
  MixSettings settings{.method = MixMethod::kExplicit, .weights = {{"wiki", 3}, {"wiki/fr", 1}, {"code", 4}}};
  // wiki's 3 are shared by en and de as they have tokens; fr has its own.
  EXPECT_THAT(*MixWeights(settings, Groups({{"wiki/en", 200}, {"wiki/fr", 999}, {"wiki/de", 100}, {"code", 5}})),
              ElementsAre(0.25, 0.125, 0.125, 0.5));
}

TEST(MixWeights, ExplicitOnesThatDoNotFitAreNamed) {
  MixSettings settings{.method = MixMethod::kExplicit, .weights = {{"wikki", 1}, {"code", 1}}};
  std::string message(MixWeights(settings, Groups({{"wiki/en", 1}, {"code", 1}})).status().message());
  EXPECT_THAT(message, HasSubstr("weights.wikki: there is no such source or group"));
  EXPECT_THAT(message, HasSubstr("group wiki/en has none"));
}

TEST(MixWeights, NothingToDrawFromIsAnError) {
  EXPECT_FALSE(MixWeights({}, {}).ok());
  EXPECT_FALSE(MixWeights({}, Groups({{"a", 0}})).ok());
  EXPECT_FALSE(MixWeights({.method = MixMethod::kExplicit, .weights = {{"a", 0}}}, Groups({{"a", 1}})).ok());
}

TEST(MixSettings, AllFaultsAreInOneMessage) {
  MixSettings settings{.method = MixMethod::kTemperature, .weights = {{"a", -1}}, .alpha = 2, .budget_tokens = -1,
                       .epochs_max = 0};
  std::string message(settings.Validate().message());
  for (const char* name : {"weights.a", "method explicit", "alpha", "budget_tokens", "epochs_max"}) {
    EXPECT_THAT(message, HasSubstr(name));
  }
}

}  // namespace
}  // namespace llmctl::data
