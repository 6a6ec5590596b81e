#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/deadlines.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Cancel, OfAQueuedJobEndsItAtOnce) {
  CoreWorld world;
  JobId id = world.Submit();

  world.Do(JobCancelled{1, id, "typo in the data path"});

  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
  EXPECT_EQ(world.reason(id), "typo in the data path");
}

TEST(Cancel, OfARunningJobIsAnsweredAtOnceAndStopsTheRanks) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Do(JobCancelled{1, id, ""});
  EXPECT_TRUE(world.LastReply().ok());
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.Exit(id, 0, StoppedByAgent());
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
  EXPECT_TRUE(world.Sent<RequestPlan>().size() == 1);
}

TEST(Cancel, WinsOverAFailureThatWouldBeRetried) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Exit(id, 0, KilledBy(9));
  ASSERT_EQ(world.job(id).phase, JobPhase::kStopping);

  world.Do(JobCancelled{1, id, ""});
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
}

TEST(Cancel, WinsOverSuspendAndInEveryWaitingPhase) {
  CoreWorld world;
  world.Connect("node-a");
  JobId starting = world.Submit();
  world.Place();
  world.Do(JobCancelled{1, starting, ""});
  EXPECT_EQ(world.job(starting).phase, JobPhase::kCancelled) << "nothing was started yet";

  JobId suspending = world.Submit();
  world.Run(suspending);
  world.Do(JobSuspended{2, suspending});
  world.Do(JobCancelled{3, suspending, ""});
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.ReleaseAll(suspending);
  EXPECT_EQ(world.job(suspending).phase, JobPhase::kCancelled);

  JobId suspended = world.Submit();
  world.Do(JobSuspended{4, suspended});
  world.Do(JobCancelled{5, suspended, ""});
  EXPECT_EQ(world.job(suspended).phase, JobPhase::kCancelled);
}

TEST(Cancel, OfAnEndedJobIsRefusedButRepeatingACancelIsFine) {
  CoreWorld world;
  world.Connect("node-a");
  JobId done = world.Submit();
  world.Run(done);
  world.ExitAll(done, ExitCode(0));
  world.Do(JobCancelled{1, done, ""});
  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.job(done).phase, JobPhase::kSucceeded);

  JobId id = world.Submit();
  world.Do(JobCancelled{2, id, ""});
  world.Do(JobCancelled{3, id, ""});
  EXPECT_TRUE(world.LastReply().ok());
}

TEST(Suspend, SavesACheckpointFreesTheDevicesAndResumeGoesOnFromIt) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Do(JobSuspended{1, id});
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_TRUE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.Commit(id, 30);
  world.Exit(id, 0, ExitCode(10));
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
  EXPECT_THAT(world.reason(id), HasSubstr("step 30"));
  world.Place();
  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);

  world.Do(JobResumed{2, id});
  world.Run(id);
  EXPECT_EQ(world.job(id).attempt->start_checkpoint_step, 30);
  EXPECT_EQ(world.job(id).infrastructure_failures, 0);
}

TEST(Suspend, OfAJobThatFinishesMeanwhileIsSuccess) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobSuspended{1, id});

  world.Exit(id, 0, ExitCode(0));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kSucceeded);
}

TEST(Suspend, DuringAFailureLeadsToSuspendedInsteadOfARetry) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Exit(id, 0, KilledBy(9));

  world.Do(JobSuspended{1, id});
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
}

TEST(Suspend, RankThatFailsWhileYieldingHurriesTheOthers) {
  CoreWorld world;
  world.Connect("node-a", 2);
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  world.Do(JobSuspended{1, id});

  world.Exit(id, 0, KilledBy(9));

  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.Exit(id, 1, StoppedByAgent());
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
}

TEST(Resume, OfAJobThatIsStillStoppingQueuesItAfterwards) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobSuspended{1, id});

  world.Do(JobResumed{2, id});
  EXPECT_TRUE(world.LastReply().ok());
  world.Exit(id, 0, ExitCode(10));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.job(id).infrastructure_failures, 0);
}

TEST(Resume, OfARunningJobIsRefused) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Do(JobResumed{1, id});

  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(world.LastReply().message()), HasSubstr("it is running, not suspended"));
}

TEST(TimeLimit, IsReachedAfterTheTimeAllRanksRanAndEndsWithACheckpoint) {
  CoreWorld world;
  world.Connect("node-a");
  JobRequirements needs = CoreWorld::Needs(1);
  needs.time_limit = absl::Hours(1);
  JobId id = world.Submit(needs);
  world.Run(id);
  world.Advance(absl::Minutes(40));
  world.FailOnce(id, KilledBy(9));
  world.Advance(absl::Hours(2));
  world.Run(id);
  world.Advance(absl::Minutes(19));
  ASSERT_EQ(world.job(id).phase, JobPhase::kRunning);

  world.Advance(absl::Minutes(1));
  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  EXPECT_TRUE(world.Sent<StopRanks>().at(0).checkpoint_first);
  world.Exit(id, 0, ExitCode(10));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.rule, "time-limit");
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kScheduler);
  EXPECT_THAT(world.reason(id), HasSubstr("time limit of 1h"));
}

TEST(TimeLimit, CountsTheTimeUpToTheLastCommitAcrossARestartOfTheCoordinator) {
  CoreWorld world;
  world.Connect("node-a");
  JobRequirements needs = CoreWorld::Needs(1);
  needs.time_limit = absl::Hours(1);
  JobId id = world.Submit(needs);
  world.Run(id);
  world.Advance(absl::Minutes(50));
  world.Commit(id, 5);
  std::vector<ShimReport> shims = world.ShimsOf("node-a");

  world.Restart();
  world.Reconnect("node-a", shims);
  world.Advance(absl::Minutes(10));

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
}

}  // namespace
}  // namespace llmctl::core
