#include "coordinator/runtime/hang_watch.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using testing::HasSubstr;

Instant At(double seconds) {
  return {absl::Seconds(seconds), absl::FromUnixSeconds(1000000) + absl::Seconds(seconds)};
}

// Of one job, a rank a pulse, all in the midst of a step.
class Gang {
 public:
  explicit Gang(int ranks = 2, int64_t generation = 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      pulses.push_back({.generation = {JobId("j-1"), 1, generation},
                        .rank = rank,
                        .activity = "training",
                        .phase = "collective",
                        .activity_seconds = 1000,
                        .step = 50,
                        .steps_here = 50});
    }
  }
  // The last step was done so long ago on every rank.
  Gang& Since(double seconds) {
    for (RankPulse& pulse : pulses) pulse.step_seconds = seconds;
    return *this;
  }
  std::vector<RankPulse> pulses;
};

void TakeSteps(HangWatch& watch, int count, double seconds) {
  for (int i = 0; i < count; ++i) watch.AddStep({JobId("j-1"), 1, 1}, seconds);
}

// Known for long, with steps of a second.
HangWatch Trained() {
  HangWatch watch;
  watch.Observe(Gang().Since(0).pulses, {}, At(0));
  TakeSteps(watch, 100, 1);
  return watch;
}

TEST(StepHistory, PercentilesAreOfTheLastSteps) {
  StepHistory steps;
  EXPECT_EQ(steps.Percentile(0.99), absl::ZeroDuration());

  for (int i = 1; i <= 100; ++i) steps.Add(i);
  EXPECT_EQ(steps.Percentile(0.5), absl::Seconds(50));
  EXPECT_EQ(steps.Percentile(0.99), absl::Seconds(99));
  EXPECT_EQ(steps.Percentile(1), absl::Seconds(100));

  for (size_t i = 0; i < StepHistory::kKept; ++i) steps.Add(2);
  EXPECT_EQ(steps.Percentile(1), absl::Seconds(2)) << "what has been forgotten does not count";
}

TEST(StepHistory, WhatIsNoDurationDoesNotCount) {
  StepHistory steps;
  steps.Add(0);
  steps.Add(-1);
  steps.Add(std::numeric_limits<double>::quiet_NaN());

  EXPECT_TRUE(steps.empty());
}

TEST(HangLimits, FollowTheJobsOwnStepsUnlessTheyAreGiven) {
  StepHistory quick, slow;
  for (int i = 0; i < 100; ++i) {
    quick.Add(0.1);
    slow.Add(40);
  }
  absl::Duration zero = absl::ZeroDuration();

  EXPECT_EQ(LimitsOf(quick, zero, zero, zero).step, absl::Minutes(1));
  EXPECT_EQ(LimitsOf(slow, zero, zero, zero).step, absl::Seconds(200));
  EXPECT_EQ(LimitsOf(quick, absl::Seconds(3), zero, zero).step, absl::Seconds(3));
  EXPECT_EQ(LimitsOf(slow, absl::Seconds(3), zero, zero).step, absl::Seconds(80)) << "never below its own steps";
  EXPECT_EQ(LimitsOf(quick, zero, zero, zero).first, absl::Minutes(10));
  EXPECT_EQ(LimitsOf(quick, absl::Seconds(3), zero, zero).first, absl::Seconds(30));
  EXPECT_EQ(LimitsOf(quick, zero, absl::Minutes(2), zero).validation, absl::Minutes(10));
  EXPECT_EQ(LimitsOf(quick, zero, absl::Seconds(1), zero).validation, absl::Minutes(1));
}

TEST(Patience, EveryActivityHasItsOwn) {
  HangLimits limits = {.step = absl::Seconds(10),
                       .first = absl::Seconds(100),
                       .validation = absl::Seconds(50),
                       .checkpoint = absl::ZeroDuration()};
  auto limit = [&](const char* activity, const char* phase, int64_t steps_here) {
    return PatienceWith({.activity = activity, .phase = phase, .steps_here = steps_here}, limits).limit;
  };

  EXPECT_EQ(limit("training", "data", 5), absl::Seconds(10));
  EXPECT_EQ(limit("training", "data", 0), absl::Seconds(100)) << "the first step";
  EXPECT_EQ(limit("validation", "forward", 5), absl::Seconds(50));
  EXPECT_EQ(limit("checkpoint", "writing", 5), absl::Seconds(100)) << "the first checkpoint";
  EXPECT_EQ(limit("starting", "rendezvous", 0), absl::Seconds(100));
  EXPECT_EQ(limit("ending", "commit", 5), absl::InfiniteDuration());
}

TEST(Patience, AStepThatFollowsAValidationBeginsAnew) {
  Patience patience = PatienceWith(
      {.activity = "training", .phase = "data", .activity_seconds = 2, .steps_here = 5, .step_seconds = 300}, {});

  EXPECT_EQ(patience.age, absl::Seconds(2));
}

TEST(HangWatch, SuspectsAJobWhoseRanksAllStandStillAndSaysByWhatMeasure) {
  HangWatch watch = Trained();

  EXPECT_FALSE(watch.Observe(Gang().Since(60).pulses, {}, At(200)).has_value());
  auto suspicion = watch.Observe(Gang().Since(61).pulses, {}, At(201));

  ASSERT_TRUE(suspicion.has_value());
  EXPECT_EQ(suspicion->step, 50);
  EXPECT_THAT(suspicion->text, HasSubstr("no progress after step 50 for 61.0 s, 60.0 s are allowed"));
  EXPECT_THAT(suspicion->text, HasSubstr("99 % of them at most 1.0 s"));
}

TEST(HangWatch, OneRankWithinItsLimitIsEnough) {
  HangWatch watch = Trained();
  Gang gang;
  gang.Since(300);
  // The others wait while rank 0 writes the first checkpoint.
  gang.pulses[0].activity = "checkpoint";
  gang.pulses[0].phase = "writing";
  gang.pulses[0].activity_seconds = 300;

  EXPECT_FALSE(watch.Observe(gang.pulses, {}, At(400)).has_value());
  gang.pulses[0].activity_seconds = 601;
  EXPECT_TRUE(watch.Observe(gang.pulses, {}, At(701)).has_value());
}

TEST(HangWatch, AsksOnceUntilTheSuspicionIsDismissed) {
  HangWatch watch = Trained();
  ASSERT_TRUE(watch.Observe(Gang().Since(100).pulses, {}, At(200)).has_value());

  EXPECT_FALSE(watch.Observe(Gang().Since(101).pulses, {}, At(201)).has_value());
  watch.Dismiss({JobId("j-1"), 1, 1}, At(202));
  EXPECT_FALSE(watch.Observe(Gang().Since(110).pulses, {}, At(210)).has_value());
  EXPECT_TRUE(watch.Observe(Gang().Since(163).pulses, {}, At(263)).has_value());
}

TEST(HangWatch, AnAttemptIsWatchedForALimitBeforeItIsJudged) {
  HangWatch watch;

  // The coordinator was away: the ranks may have waited for it.
  EXPECT_FALSE(watch.Observe(Gang().Since(500).pulses, {.hang_after = absl::Seconds(10)}, At(0)).has_value());
  EXPECT_FALSE(watch.Observe(Gang().Since(509).pulses, {.hang_after = absl::Seconds(10)}, At(9)).has_value());
  EXPECT_TRUE(watch.Observe(Gang().Since(511).pulses, {.hang_after = absl::Seconds(10)}, At(11)).has_value());
}

TEST(HangWatch, ASilentHostIsNotJudged) {
  HangWatch watch = Trained();
  Gang gang;
  gang.Since(100);
  watch.Observe({gang.pulses[1]}, {}, At(100));

  // Rank 1 was heard of last 10 s ago: it may have got on, or its host's lease is running out.
  EXPECT_FALSE(watch.Observe({gang.pulses[0]}, {}, At(110)).has_value());
}

TEST(HangWatch, ARankThatHasEndedIsWaitedForByNobody) {
  HangWatch watch = Trained();
  Gang gang;
  gang.Since(0);
  watch.Observe({gang.pulses[1]}, {}, At(100));
  // Rank 0 alone writes the last checkpoint, and does not get on with it.
  gang.pulses[0].activity = "checkpoint";
  gang.pulses[0].activity_seconds = 700;

  EXPECT_FALSE(watch.Observe({gang.pulses[0]}, {}, At(800)).has_value());
  EXPECT_TRUE(watch.Observe({gang.pulses[0]}, {.ended = {1}}, At(801)).has_value());
  EXPECT_FALSE(Trained().Observe(gang.pulses, {.ended = {0, 1}}, At(801)).has_value());
}

TEST(HangWatch, ALateHeartbeatOfAnEarlierGenerationChangesNothing) {
  HangWatch watch;
  watch.Observe(Gang(2, /*generation=*/2).Since(0).pulses, {.hang_after = absl::Seconds(1)}, At(0));

  Gang late(2, /*generation=*/1);
  late.Since(100);
  EXPECT_FALSE(watch.Observe(late.pulses, {.hang_after = absl::Seconds(1)}, At(100)).has_value());
}

TEST(HangWatch, StartIsJudgedBeforeTheCoreGivesItUp) {
  HangWatch watch;
  Gang gang;
  for (RankPulse& pulse : gang.pulses) {
    pulse.activity = "starting";
    pulse.phase = "rendezvous";
    pulse.steps_here = 0;
    pulse.activity_seconds = 0;
  }
  watch.Observe(gang.pulses, {}, At(0));
  for (RankPulse& pulse : gang.pulses) pulse.activity_seconds = 101;

  EXPECT_TRUE(watch.Observe(gang.pulses, {}, At(101)).has_value());
}

}  // namespace
}  // namespace llmctl::runtime
