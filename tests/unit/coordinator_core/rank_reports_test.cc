#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/deadlines.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(RankReports, AllRanksFinishedIsSuccessAndTheDevicesWaitForTheRelease) {
  CoreWorld world;
  world.Connect("node-a", 2);
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Exit(id, 0, ExitCode(0));
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  world.Exit(id, 1, ExitCode(0));

  EXPECT_EQ(world.job(id).phase, JobPhase::kSucceeded);
  EXPECT_THAT(world.Sent<DropRendezvous>(), SizeIs(1));
  EXPECT_THAT(world.state.device_owner, SizeIs(2));
  world.Release(id, "node-a");
  EXPECT_THAT(world.state.device_owner, IsEmpty());
  EXPECT_EQ(world.job(id).phase, JobPhase::kSucceeded);
}

TEST(RankReports, AFailedRankStopsTheGangOnAllHostsBeforeItIsRetried) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Exit(id, 1, KilledBy(11));

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  EXPECT_THAT(world.Sent<StopRanks>(), SizeIs(2));
  world.Release(id, "node-b");
  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping) << "node-a still has a rank";
  world.Exit(id, 0, StoppedByAgent());
  world.Release(id, "node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST(RankReports, OfAnOldGenerationChangeNothing) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  GenerationId old = world.generation(id);
  world.FailOnce(id, KilledBy(9));
  world.Run(id);

  world.Do(RankChanged{NodeId("node-a"), old, 0, RankPhase::kExited, 0, ExitCode(65)});

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_THAT(world.Sent<PersistJob>(), IsEmpty());
}

TEST(RankReports, LateStartingAfterRunningIsIgnored) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Do(RankChanged{NodeId("node-a"), world.generation(id), 0, RankPhase::kStarting, 5, {}});

  EXPECT_EQ(world.job(id).attempt->ranks[0].phase, RankPhase::kRunning);
}

TEST(RankReports, RanksThatLeaveUnaskedAreTriedAgainAgainstTheCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.FailOnce(id, ExitCode(10));

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.job(id).infrastructure_failures, 1);
}

TEST(GangStop, HostThatHoldsOnDoesNotHoldTheJobAndItsDeviceStaysTaken) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Run(id);
  ASSERT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-a"));
  GenerationId old = world.generation(id);

  world.Exit(id, 0, KilledBy(9));
  world.Advance(kFailureGrace + kStopSlack);
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_EQ(world.Sent<StopRanks>()[0].grace, absl::ZeroDuration());
  world.Advance(kStopGiveUp);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);

  EXPECT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-b"));
  EXPECT_EQ(world.state.device_owner.at({NodeId("node-a"), 0}), old);
  world.Do(GangReleased{NodeId("node-a"), old});
  EXPECT_FALSE(world.state.device_owner.contains({NodeId("node-a"), 0}));
}

}  // namespace
}  // namespace llmctl::core
