// What is left of a job that was taken out of play.
#include "coordinator/core/quarantine.h"

#include <sys/mman.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/entity.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Quarantine, RunningJobIsHeldItsHostStopsItAndResumingGoesOnFromTheCheckpoint) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  JobId other = world.Submit();
  world.Run(id);
  world.Commit(id, 10);
  std::vector<ShimReport> shims = world.ShimsOf("a");
  GenerationId before = world.generation(id);

  world.Hold(id, "handling it has crashed the coordinator 2 times");

  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
  EXPECT_THAT(world.reason(id), AllOf(HasSubstr("quarantined: handling it"), HasSubstr("llmctl resume j-1")));
  world.Reconnect("a", shims);
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_EQ(world.Sent<StopRanks>()[0].generation, before);
  // The device is not given to the other job before the host has let go of it.
  world.Place();
  EXPECT_EQ(world.job(other).phase, JobPhase::kQueued);
  world.Do(GangReleased{NodeId("a"), before});
  world.Run(other);
  world.ExitAll(other, ExitCode(0));
  world.Do(GangReleased{NodeId("a"), world.generation(other)});

  world.Do(JobResumed{7, id});

  EXPECT_FALSE(world.job(id).quarantined);
  world.Run(id);
  EXPECT_GT(world.generation(id).generation, before.generation);
  EXPECT_EQ(world.job(id).attempt->start_checkpoint_step, 10);
}

TEST(Quarantine, LateCommitOfAHeldJobIsStillTaken) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  world.Run(id);
  world.Hold(id, "why");
  world.Reconnect("a", {});

  world.Commit(id, 10);

  EXPECT_THAT(world.job(id).checkpoints, SizeIs(1));
}

TEST(Quarantine, QueuedJobIsHeldAndNotPlaced) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  world.Hold(id, "why");
  world.Connect("a");

  world.Place();

  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
}

TEST(Quarantine, CancelThatWasAcceptedWins) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobCancelled{5, id, "no longer needed"});
  ASSERT_EQ(world.job(id).phase, JobPhase::kStopping);

  world.Hold(id, "why");

  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
  EXPECT_THAT(world.reason(id), AllOf(HasSubstr("no longer needed"), HasSubstr("quarantined")));
}

TEST(Quarantine, StandInKeepsNameAndKeyCannotBeResumedAndMayBeCancelledAndDeleted) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit(CoreWorld::Needs(1), "key");
  world.Run(id);

  world.Bury(id, "why");

  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
  EXPECT_THAT(world.reason(id), HasSubstr("quarantined: why"));
  EXPECT_EQ(world.Submit(CoreWorld::Needs(1), "key"), id);
  world.Do(JobResumed{8, id});
  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
  world.Do(JobCancelled{9, id, ""});
  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
  world.Do(JobDeleted{10, id});
  EXPECT_THAT(world.state.jobs, IsEmpty());
}

// What users were told stays so.
TEST(Quarantine, StandInOfAJobThatHasEndedHasEndedInTheSameWay) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  world.Run(id);
  world.ExitAll(id, ExitCode(0));
  world.Do(GangReleased{NodeId("a"), world.generation(id)});
  ASSERT_EQ(world.job(id).phase, JobPhase::kSucceeded);
  absl::Time ended = world.job(id).end_time;

  world.Bury(id, "why");

  EXPECT_EQ(world.job(id).phase, JobPhase::kSucceeded);
  EXPECT_EQ(world.job(id).end_time, ended);
  EXPECT_THAT(world.reason(id), AllOf(HasSubstr("all ranks have finished"), HasSubstr("quarantined: why")));
}

TEST(Quarantine, EventsNameWhatACrashInThemIsBlamedOn) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  JobSubmitted submission;
  submission.project = "default";
  submission.idempotency_key = "k";

  EXPECT_EQ(EntityOf(world.state, JobCancelled{1, id, ""}).id, id.value());
  EXPECT_EQ(EntityOf(world.state, WorkerLost{NodeId("a"), 1, ""}).kind, kNodeEntity);
  EXPECT_EQ(EntityOf(world.state, submission).id, "default/k");
  EXPECT_EQ(EntityOf(world.state, CoordinatorStarted{}).kind, "");
}

// A step that goes through many jobs says which one it is at, and nothing when it is done.
TEST(Quarantine, StepOverManyJobsNamesTheOneItIsAt) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit();
  world.Run(id);
  Focus::Cell cell;
  Focus focus(cell);
  State state = world.state;

  Step(state, WorkerLost{NodeId("a"), 1, "gone"}, world.now, &focus);

  EXPECT_STREQ(cell.entity, "job j-1");
  EXPECT_EQ(cell.stage, 0);
}

TEST(QuarantineDeathTest, CrashOnAJobInAStepOfItsHostIsBlamedOnTheJob) {
  CoreWorld world;
  world.Connect("a");
  JobId bad = world.Submit();
  world.Run(bad);
  Focus::Cell& cell = *static_cast<Focus::Cell*>(
      mmap(nullptr, sizeof(Focus::Cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Focus focus(cell);
  world.state.jobs.at(bad).user_restarts = 1000;  // an invariant is broken

  EXPECT_DEATH(Step(world.state, WorkerLost{NodeId("a"), 1, "gone"}, world.now, &focus), "maxRestarts");

  EXPECT_EQ(cell.stage, 's');
  EXPECT_EQ(std::string(cell.entity), absl::StrCat("job ", bad.value()));
}

}  // namespace
}  // namespace llmctl::core
