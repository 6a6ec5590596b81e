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

constexpr absl::Duration kHeartbeats = absl::Seconds(1);

// Known for long until `now`, with steps of a second.
HangWatch Trained(double now) {
  HangWatch watch(kHeartbeats);
  watch.Observe(Gang().Since(0).pulses, {}, At(0));
  TakeSteps(watch, 100, 1);
  for (double time = 1; time < now; time += 4) watch.Observe(Gang().Since(0).pulses, {}, At(time));
  return watch;
}

// A gang that has stood still since `begun` is heard of every few seconds from `from` on; when it is suspected, or
// `to` if it is not.
double SuspectedAt(HangWatch& watch, double begun, double from, double to, const HangWatch::JobFacts& facts = {}) {
  for (double time = from; time < to; time += 4) {
    if (watch.Observe(Gang().Since(time - begun).pulses, facts, At(time)).has_value()) return time;
  }
  return to;
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

TEST(HangLimits, WhoKnowsNoStepOfTheJobAllowsWhatAFirstOneMayTake) {
  absl::Duration zero = absl::ZeroDuration();

  EXPECT_EQ(LimitsOf({}, zero, zero, zero).step, absl::Minutes(10));
  EXPECT_EQ(LimitsOf({}, absl::Seconds(3), zero, zero).step, absl::Seconds(30));
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
  HangWatch watch = Trained(200);

  EXPECT_FALSE(watch.Observe(Gang().Since(60).pulses, {}, At(200)).has_value());
  auto suspicion = watch.Observe(Gang().Since(61).pulses, {}, At(201));

  ASSERT_TRUE(suspicion.has_value());
  EXPECT_EQ(suspicion->step, 50);
  EXPECT_THAT(suspicion->text, HasSubstr("no progress after step 50 for 61.0 s, 60.0 s are allowed"));
  EXPECT_THAT(suspicion->text, HasSubstr("99 % of them at most 1.0 s"));
}

TEST(HangWatch, OneRankWithinItsLimitIsEnough) {
  HangWatch watch = Trained(700);
  Gang gang;
  gang.Since(300);
  // The others wait while rank 0 writes the first checkpoint.
  gang.pulses[0].activity = "checkpoint";
  gang.pulses[0].phase = "writing";
  gang.pulses[0].activity_seconds = 300;

  EXPECT_FALSE(watch.Observe(gang.pulses, {}, At(700)).has_value());
  gang.pulses[0].activity_seconds = 601;
  EXPECT_TRUE(watch.Observe(gang.pulses, {}, At(701)).has_value());
}

TEST(HangWatch, AsksOnceUntilTheSuspicionIsDismissed) {
  HangWatch watch = Trained(200);
  ASSERT_TRUE(watch.Observe(Gang().Since(100).pulses, {}, At(200)).has_value());

  EXPECT_FALSE(watch.Observe(Gang().Since(101).pulses, {}, At(201)).has_value());
  watch.Dismiss({JobId("j-1"), 1, 1}, At(202));
  EXPECT_EQ(SuspectedAt(watch, /*begun=*/100, /*from=*/203, /*to=*/300), 263);
}

TEST(HangWatch, AnAttemptIsWatchedForALimitBeforeItIsJudged) {
  HangWatch watch(kHeartbeats);
  HangWatch::JobFacts facts = {.hang_after = absl::Seconds(10)};

  // The coordinator was away: the ranks may have waited for it.
  EXPECT_FALSE(watch.Observe(Gang().Since(500).pulses, facts, At(0)).has_value());
  TakeSteps(watch, 1, 1);
  EXPECT_EQ(SuspectedAt(watch, /*begun=*/-500, /*from=*/3, /*to=*/100, facts), 11);
}

// Steps of three minutes, and a coordinator that knows nothing of them: the one under way began before it.
TEST(HangWatch, AJobWithLongStepsOutlivesARestartOfTheCoordinator) {
  HangWatch watch(kHeartbeats);

  EXPECT_EQ(SuspectedAt(watch, /*begun=*/-100, /*from=*/0, /*to=*/80), 80);
  TakeSteps(watch, 1, 180);
  EXPECT_EQ(SuspectedAt(watch, /*begun=*/80, /*from=*/80, /*to=*/260), 260);
}

TEST(HangWatch, AfterARestartOfTheCoordinatorAHangIsFoundAllTheSame) {
  HangWatch watch(kHeartbeats);

  EXPECT_EQ(SuspectedAt(watch, /*begun=*/-1000, /*from=*/0, /*to=*/2000), 604);
}

TEST(HangWatch, WhileTheCoordinatorStoodStillRanksMayHaveWaitedForIt) {
  HangWatch watch = Trained(200);

  // It hears nothing from 200 to 300.
  EXPECT_EQ(SuspectedAt(watch, /*begun=*/200, /*from=*/300, /*to=*/500), 364);
}

TEST(HangWatch, HostsThatAreSeldomHeardOfAreJudgedToo) {
  HangWatch watch(absl::Seconds(12));
  Gang gang(3);
  watch.Observe(gang.Since(0).pulses, {}, At(0));
  TakeSteps(watch, 100, 1);
  double suspected = 0;

  // Each of the three hosts reports every twelve seconds, in turn.
  for (int time = 4; time < 100 && suspected == 0; time += 4) {
    gang.Since(time);
    if (watch.Observe({gang.pulses[time / 4 % 3]}, {}, At(time)).has_value()) suspected = time;
  }

  EXPECT_EQ(suspected, 72);
}

TEST(HangWatch, ASilentHostIsNotJudged) {
  HangWatch watch = Trained(100);
  Gang gang;
  watch.Observe({gang.Since(100).pulses[1]}, {}, At(100));
  for (double time : {103, 107}) watch.Observe({gang.Since(0).pulses[0]}, {}, At(time));

  // Rank 1 was heard of last 10 s ago: it may have got on, or its host's lease is running out.
  EXPECT_FALSE(watch.Observe({gang.Since(100).pulses[0]}, {}, At(110)).has_value());
  EXPECT_TRUE(watch.Observe({gang.pulses[1]}, {}, At(111)).has_value());
}

TEST(HangWatch, ARankThatHasEndedIsWaitedForByNobody) {
  HangWatch watch = Trained(800);
  Gang gang;
  gang.Since(0);
  for (double time : {801, 805}) watch.Observe({gang.pulses[0]}, {}, At(time));
  // Rank 0 alone writes the last checkpoint, and does not get on with it.
  gang.pulses[0].activity = "checkpoint";
  gang.pulses[0].activity_seconds = 700;

  EXPECT_FALSE(watch.Observe({gang.pulses[0]}, {}, At(810)).has_value());
  EXPECT_TRUE(watch.Observe({gang.pulses[0]}, {.ended = {1}}, At(811)).has_value());
  EXPECT_FALSE(Trained(800).Observe(gang.pulses, {.ended = {0, 1}}, At(800)).has_value());
}

TEST(HangWatch, ALateHeartbeatOfAnEarlierGenerationChangesNothing) {
  HangWatch watch(kHeartbeats);
  watch.Observe(Gang(2, /*generation=*/2).Since(0).pulses, {.hang_after = absl::Seconds(1)}, At(0));

  Gang late(2, /*generation=*/1);
  late.Since(100);
  EXPECT_FALSE(watch.Observe(late.pulses, {.hang_after = absl::Seconds(1)}, At(100)).has_value());
}

TEST(HangWatch, StartIsJudgedBeforeTheCoreGivesItUp) {
  HangWatch watch(kHeartbeats);
  Gang gang;
  double suspected = 0;
  for (double time = 0; time < 120 && suspected == 0; time += 4) {
    for (RankPulse& pulse : gang.pulses) {
      pulse.activity = "starting";
      pulse.phase = "rendezvous";
      pulse.steps_here = 0;
      pulse.activity_seconds = time;
    }
    if (watch.Observe(gang.pulses, {}, At(time)).has_value()) suspected = time;
  }

  EXPECT_EQ(suspected, 104);
}

}  // namespace
}  // namespace llmctl::runtime
