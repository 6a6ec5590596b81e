#include "worker/data/shards/group_schedule.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;

// That after every prefix each group has floor or ceil of its share, and that turns are numbered without gaps.
void ExpectFair(const GroupSchedule& schedule, int64_t slots) {
  std::vector<int64_t> had(schedule.turns().size());
  for (int64_t slot = 0; slot < slots; ++slot) {
    GroupSchedule::Turn turn = schedule.At(slot);
    ASSERT_EQ(turn.index, had[turn.group]++) << "slot " << slot;
    for (size_t g = 0; g < had.size(); ++g) {
      int64_t product = (slot + 1) * schedule.turns()[g], low = product / schedule.period();
      int64_t high = low + (product % schedule.period() > 0 ? 1 : 0);
      ASSERT_TRUE(had[g] == low || had[g] == high)
          << "after " << slot + 1 << " slots group " << g << " had " << had[g] << " of " << low << " to " << high;
    }
  }
}

TEST(GroupSchedule, DecimalWeightsAreKeptExactly) {
  GroupSchedule schedule = *GroupSchedule::Create({0.7, 0.2, 0.1});

  EXPECT_THAT(schedule.turns(), ElementsAre(7, 2, 1));
  // Deadlines are 2 3 5 6 8 9 10, 5 10 and 10, releases 0 1 2 4 5 7 8, 0 5 and 0.
  std::vector<int> groups;
  for (int64_t slot = 0; slot < 10; ++slot) groups.push_back(schedule.At(slot).group);
  EXPECT_THAT(groups, ElementsAre(0, 0, 0, 1, 0, 0, 1, 0, 0, 2));
  ExpectFair(schedule, 35);
}

TEST(GroupSchedule, EveryPrefixIsWithinOneOfItsShare) {
  SeededRng rng(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> weights(1 + rng.Below(12));
    for (double& weight : weights) weight = static_cast<double>(1 + rng.Below(round % 2 == 0 ? 4 : 60));
    GroupSchedule schedule = *GroupSchedule::Create(weights);
    ExpectFair(schedule, 2 * schedule.period());
  }
}

TEST(GroupSchedule, AnyWeightsAreKeptToAMillionth) {
  std::vector<double> weights = {1 / M_PI, 1e-9, 0, std::sqrt(2.0), 0.01};
  GroupSchedule schedule = *GroupSchedule::Create(weights);

  double sum = weights[0] + weights[1] + weights[3] + weights[4];
  EXPECT_EQ(schedule.period(), 1 << 20);
  EXPECT_EQ(schedule.turns()[1], 1) << "a weight that rounds to nothing is still one";
  EXPECT_EQ(schedule.turns()[2], 0);
  for (size_t g : {0, 3, 4}) {
    EXPECT_NEAR(static_cast<double>(schedule.turns()[g]) / static_cast<double>(schedule.period()), weights[g] / sum,
                1e-6);
  }
  // Far out a slot is found as quickly, and turns go on where the period before ended.
  int64_t far = (int64_t{1} << 40) * schedule.period();
  EXPECT_EQ(schedule.At(far).group, schedule.At(0).group);
  EXPECT_EQ(schedule.At(far).index, (int64_t{1} << 40) * schedule.turns()[schedule.At(0).group]);
}

TEST(GroupSchedule, RefusesWhatIsNoWeight) {
  EXPECT_FALSE(GroupSchedule::Create({}).ok());
  EXPECT_FALSE(GroupSchedule::Create({0, 0}).ok());
  EXPECT_FALSE(GroupSchedule::Create({1, -1}).ok());
  EXPECT_FALSE(GroupSchedule::Create({1, NAN}).ok());
  EXPECT_FALSE(GroupSchedule::Create({1, INFINITY}).ok());
  EXPECT_FALSE(GroupSchedule::Create(std::vector<double>(1 << 15, 1.0)).ok());
}

}  // namespace
}  // namespace llmctl::data
