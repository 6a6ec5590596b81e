#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/failure_class.h"
#include "tests/unit/coordinator_core/core_world.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::core {
namespace {

using testing::HasSubstr;

JobRequirements Budgets(int max_restarts, int without_progress) {
  JobRequirements needs = CoreWorld::Needs(1);
  needs.max_restarts = max_restarts;
  needs.max_attempts_without_progress = without_progress;
  return needs;
}

TEST(FailureClass, ReadsTheExitCodesOfTheTrainerContract) {
  EXPECT_TRUE(ExitedWell(ExitCode(contract::kExitOk)));
  EXPECT_TRUE(EndedOnRequest(ExitCode(contract::kExitYielded)));
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitConfig)), FailureClass::kConfig);
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitUser)), FailureClass::kUser);
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitOutOfMemory)), FailureClass::kOutOfMemory);
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitInfrastructure)), FailureClass::kInfrastructure);
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitOrphaned)), FailureClass::kInfrastructure);
  EXPECT_EQ(ClassifyExit(ExitCode(contract::kExitInternal)), FailureClass::kInfrastructure);
  EXPECT_EQ(ClassifyExit(ExitCode(1)), FailureClass::kUser);
  EXPECT_EQ(ClassifyExit(KilledBy(11)), FailureClass::kInfrastructure);
}

TEST(FailureClass, BelievesTheTrainersOwnWordOverTheCode) {
  RankExit exit = ExitCode(1);
  exit.fatal_class = "oom";

  EXPECT_EQ(ClassifyExit(exit), FailureClass::kOutOfMemory);
}

TEST(FirstCause, IsTheRankThatFailedOnItsOwnEvenIfItIsSeenLast) {
  CoreWorld world;
  world.Connect("node-a", 3);
  JobId id = world.Submit(CoreWorld::Needs(3));
  world.Run(id);

  world.Exit(id, 1, ExitCode(67, "rank 2 closed the connection"));
  world.Exit(id, 0, StoppedByAgent());
  world.Exit(id, 2, ExitCode(65, "loss is NaN at step 7"));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure_class, FailureClass::kUser);
  EXPECT_THAT(world.reason(id), HasSubstr("rank 2 on node-a ended with exit code 65: loss is NaN at step 7"));
}

TEST(FirstCause, LostHostExplainsTheCollectivesThatFailedBecauseOfIt) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Exit(id, 0, ExitCode(67, "peer closed"));
  world.Release(id, "node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping) << "node-b may only be slow";
  world.Lose("node-b");

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.reason(id), HasSubstr("host node-b is lost: no heartbeat for 10 s"));
}

TEST(RestartPolicy, ConfigErrorIsFinal) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(5, 5));
  world.Run(id);

  world.FailOnce(id, ExitCode(64, "no such dataset"));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure_class, FailureClass::kConfig);
}

TEST(RestartPolicy, UserFailuresSpendTheUsersBudget) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(1, 5));

  world.Run(id);
  world.FailOnce(id, ExitCode(65));
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);
  world.FailOnce(id, ExitCode(65));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_THAT(world.reason(id), HasSubstr("maxRestarts is 1"));
}

TEST(RestartPolicy, OutOfMemoryIsTriedOnceMore) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(5, 5));

  world.Run(id);
  world.FailOnce(id, ExitCode(66));
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);
  world.FailOnce(id, ExitCode(66));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure_class, FailureClass::kOutOfMemory);
  EXPECT_EQ(world.job(id).user_restarts, 0);
}

TEST(RestartPolicy, InfrastructureIsTriedAtOnceThenWithGrowingBackoffUpToTheCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 100));
  std::vector<absl::Duration> backoffs;

  for (int i = 0; i < 9; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    backoffs.push_back(world.job(id).backoff);
    world.Advance(world.job(id).backoff);
    ASSERT_EQ(world.job(id).phase, JobPhase::kQueued);
  }

  EXPECT_THAT(backoffs, testing::ElementsAre(absl::ZeroDuration(), absl::Seconds(1), absl::Seconds(2), absl::Seconds(4),
                                             absl::Seconds(8), absl::Seconds(16), absl::Seconds(32), absl::Seconds(60),
                                             absl::Seconds(60)));
}

TEST(RestartPolicy, AnAdvancedCheckpointResetsBackoffAndCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 3));

  for (int i = 1; i <= 6; ++i) {
    world.Run(id);
    if (i % 2 == 0) world.Commit(id, i);
    world.FailOnce(id, KilledBy(9));
    ASSERT_FALSE(IsTerminal(world.job(id).phase)) << i << ": " << world.reason(id);
    world.Advance(world.job(id).backoff);
  }

  EXPECT_EQ(world.job(id).last_attempt, 6);
}

TEST(RestartPolicy, FailuresWithoutProgressEndTheJobAtTheCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 3));

  for (int i = 0; i < 3; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    world.Advance(world.job(id).backoff);
  }

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure_class, FailureClass::kInfrastructure);
  EXPECT_THAT(world.reason(id), HasSubstr("maxAttemptsWithoutProgress is 3"));
  EXPECT_THAT(world.reason(id), HasSubstr("killed by signal 9"));
}

TEST(RestartPolicy, BackoffBeginsAnewAfterARestartOfTheCoordinator) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 10));
  for (int i = 0; i < 3; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    if (i < 2) world.Advance(world.job(id).backoff);
  }
  ASSERT_EQ(world.job(id).phase, JobPhase::kBackoff);

  world.Restart();
  EXPECT_EQ(world.job(id).phase, JobPhase::kBackoff);
  world.Advance(absl::Seconds(2));

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

}  // namespace
}  // namespace llmctl::core
