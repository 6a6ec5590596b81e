#include "worker/engine/optim/schedule.h"

#include <gtest/gtest.h>

namespace llmctl::engine {
namespace {

TEST(LearningRate, WarmsUpThenFallsAlongACosine) {
  contract::ScheduleConfig cosine = {.type = "cosine", .warmup_steps = 10, .min_learning_rate_factor = 0.1};

  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 110, 0), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 110, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 110, 9), 1.0);
  // Half way down: the mean of 1 and 0.1. A quarter: 0.1 + 0.9 * (1 + cos 45 deg) / 2.
  EXPECT_NEAR(LearningRate(cosine, 1.0, 110, 59), 0.55, 1e-12);
  EXPECT_NEAR(LearningRate(cosine, 1.0, 110, 34), 0.1 + 0.9 * 0.8535533905932737, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 110, 109), 0.1);
}

TEST(LearningRate, ConstantStaysAtItsPeak) {
  contract::ScheduleConfig constant = {.type = "constant", .warmup_steps = 2, .min_learning_rate_factor = 0.1};

  EXPECT_DOUBLE_EQ(LearningRate(constant, 3e-4, 100, 0), 1.5e-4);
  EXPECT_DOUBLE_EQ(LearningRate(constant, 3e-4, 100, 1), 3e-4);
  EXPECT_DOUBLE_EQ(LearningRate(constant, 3e-4, 100, 99), 3e-4);
}

TEST(LearningRate, AJobThatIsAllWarmUpOnlyRises) {
  contract::ScheduleConfig cosine = {.type = "cosine", .warmup_steps = 4, .min_learning_rate_factor = 0};

  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 3, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(cosine, 1.0, 3, 2), 0.75);
}

}  // namespace
}  // namespace llmctl::engine
