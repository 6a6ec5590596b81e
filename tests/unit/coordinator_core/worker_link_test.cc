#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(WorkerLink, OlderIncarnationAndOtherMachineOfTheSameNameAreRefused) {
  CoreWorld world;
  Node node = CoreWorld::MakeNode("node-a");
  node.incarnation = 5;
  world.Do(WorkerConnected{node, 1, {}});
  EXPECT_EQ(world.Sent<AdmitWorker>().at(0).link, 1);

  Node older = node;
  older.incarnation = 4;
  world.Do(WorkerConnected{older, 2, {}});
  ASSERT_THAT(world.Sent<RefuseWorker>(), SizeIs(1));
  EXPECT_EQ(world.Sent<RefuseWorker>()[0].link, 2);
  EXPECT_THAT(world.Sent<AdmitWorker>(), IsEmpty());

  Node impostor = node;
  impostor.boot_id = "boot-of-another-machine";
  world.Do(WorkerConnected{impostor, 3, {}});
  ASSERT_THAT(world.Sent<RefuseWorker>(), SizeIs(1));
  EXPECT_THAT(world.Sent<RefuseWorker>()[0].reason, HasSubstr("another --node"));
}

TEST(WorkerLink, LateHelloOfADeadAgentIsKnownThoughAnotherMachineHadTheNameSince) {
  CoreWorld world;
  Node dead = CoreWorld::MakeNode("node-a");
  dead.incarnation = 2;
  Node alive = dead;
  alive.incarnation = 3;
  world.Do(WorkerConnected{alive, 1, {}});
  world.Lose("node-a");
  Node namesake = CoreWorld::MakeNode("node-a");
  namesake.boot_id = "another machine";
  namesake.incarnation = 1;
  world.Do(WorkerConnected{namesake, 2, {}});
  ASSERT_THAT(world.Sent<AdmitWorker>(), SizeIs(1));

  world.Do(WorkerConnected{dead, 3, {}});

  ASSERT_THAT(world.Sent<RefuseWorker>(), SizeIs(1));
  EXPECT_THAT(world.Sent<RefuseWorker>()[0].reason, HasSubstr("replaced by a later one"));
  world.Do(WorkerConnected{alive, 4, {}});
  EXPECT_THAT(world.Sent<AdmitWorker>(), SizeIs(1)) << "the living one still may";
}

TEST(WorkerLink, NewerIncarnationTakesTheRunningRanksOver) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  Node newer = CoreWorld::MakeNode("node-a");
  newer.incarnation = 2;

  world.Do(WorkerConnected{newer, 9, world.ShimsOf("node-a")});

  EXPECT_THAT(world.Sent<AdmitWorker>(), SizeIs(1));
  EXPECT_THAT(world.Sent<StopRanks>(), IsEmpty());
  EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty());
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
}

TEST(WorkerLink, ExitThatHappenedMeanwhileIsTakenFromTheHello) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  std::vector<ShimReport> shims = world.ShimsOf("node-a");
  shims[0].phase = RankPhase::kExited;
  shims[0].exit = ExitCode(0);

  world.Reconnect("node-a", shims);

  EXPECT_EQ(world.job(id).phase, JobPhase::kSucceeded);
}

TEST(WorkerLink, RebootedHostFailsItsGang) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  Node rebooted = CoreWorld::MakeNode("node-b");
  rebooted.boot_id = "boot-2";
  rebooted.incarnation = 2;

  world.Do(WorkerConnected{rebooted, 9, {}});

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  EXPECT_THAT(world.job(id).attempt->failure->text, HasSubstr("node-b"));
  EXPECT_FALSE(world.state.device_owner.contains({NodeId("node-b"), 0})) << "its Hello lists no process";
  world.Release(id, "node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST(WorkerLink, StartIsRepeatedToTheSameAgentOnly) {
  // Another agent of the name may be on another machine, while the first is starting the very ranks.
  for (bool same_agent : {true, false}) {
    CoreWorld world;
    world.Connect("node-a");
    JobId id = world.Submit();
    world.Place();
    world.AnswerProbes(id);
    Node host = CoreWorld::MakeNode("node-a");
    if (!same_agent) ++host.incarnation;

    world.Do(WorkerConnected{host, 9, {}});

    EXPECT_EQ(world.Sent<StartRanks>().size(), same_agent ? 1u : 0u);
    EXPECT_EQ(world.job(id).phase, same_agent ? JobPhase::kStarting : JobPhase::kQueued);
  }
}

TEST(WorkerLink, ProcessesOfAMachineThatHadLostItsNameKeepTheirDevices) {
  CoreWorld world;
  world.Connect("node-a");
  JobId first = world.Submit();
  world.Run(first);
  std::vector<ShimReport> processes = world.ShimsOf("node-a");
  Node namesake = CoreWorld::MakeNode("node-a");
  namesake.boot_id = "another machine";
  namesake.incarnation = 2;
  world.Do(WorkerConnected{namesake, 8, {}});
  world.Do(JobCancelled{1, first, "its processes seem to be gone"});
  JobId second = world.Submit();
  world.Place();
  ASSERT_EQ(world.job(second).phase, JobPhase::kStarting);
  world.Lose("node-a");

  Node original = CoreWorld::MakeNode("node-a");
  world.Do(WorkerConnected{original, 9, processes});

  EXPECT_EQ(world.state.device_owner.at({NodeId("node-a"), 0}), processes[0].generation);
  EXPECT_EQ(world.job(second).phase, JobPhase::kQueued) << "it waits for the device";
}

TEST(WorkerLink, ProcessesThatCameBackKeepTheirDevicesWhenTheirGangEnds) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  GenerationId first = world.generation(id);
  std::vector<ShimReport> processes = world.ShimsOf("node-a");
  Node namesake = CoreWorld::MakeNode("node-a");
  namesake.boot_id = "another machine";
  namesake.incarnation = 2;
  world.Do(WorkerConnected{namesake, 8, {}});
  ASSERT_EQ(world.job(id).phase, JobPhase::kStopping);
  world.Lose("node-a");
  world.Do(WorkerConnected{CoreWorld::MakeNode("node-a"), 9, processes});

  world.Release(id, "node-b");

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.state.device_owner.at({NodeId("node-a"), 0}), first);
  world.Do(GangReleased{NodeId("node-a"), first});
  EXPECT_TRUE(world.state.device_owner.empty());
}

TEST(WorkerLoss, LostWorkerMovesTheGangAtOnceAndItsDevicesAreNotUsedBeforeItsHello) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit();
  world.Run(id);
  ASSERT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-a"));
  GenerationId old = world.generation(id);
  std::vector<ShimReport> shims = world.ShimsOf("node-a");

  world.Lose("node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);
  EXPECT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-b"));
  JobId second = world.Submit();
  world.Place();
  EXPECT_EQ(world.job(second).phase, JobPhase::kQueued);

  world.Reconnect("node-a", shims);
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_EQ(world.Sent<StopRanks>()[0].generation, old);
  world.Place();
  EXPECT_EQ(world.job(second).phase, JobPhase::kQueued) << "the old process still has the device";
  world.Do(GangReleased{NodeId("node-a"), old});
  world.Place();
  EXPECT_EQ(world.job(second).phase, JobPhase::kStarting);
}

// Found by the simulator: the release of an ended generation freed the device that a later one still used.
TEST(WorkerLoss, RecordOfAnEndedProcessDoesNotHideTheProcessThatHasTheDevice) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  std::vector<ShimReport> shims = world.ShimsOf("node-a");
  ShimReport ended = shims[0];
  ended.generation = {JobId("j-0"), 1, 1};
  ended.phase = RankPhase::kExited;
  ended.exit = ExitCode(0);
  shims.insert(shims.begin(), ended);
  GenerationId old = world.generation(id);
  world.Lose("node-a");

  world.Reconnect("node-a", shims);
  world.Do(GangReleased{NodeId("node-a"), ended.generation});

  EXPECT_EQ(world.state.device_owner.at({NodeId("node-a"), 0}), old);
}

TEST(WorkerLoss, ToldOfAnEarlierIncarnationIsIgnored) {
  CoreWorld world;
  Node node = CoreWorld::MakeNode("node-a");
  node.incarnation = 3;
  world.Do(WorkerConnected{node, 1, {}});

  world.Do(WorkerLost{NodeId("node-a"), 2, "late"});

  EXPECT_TRUE(world.state.connected.contains(NodeId("node-a")));
}

TEST(WorkerLoss, GangOnOtherHostsIsStoppedFirst) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Lose("node-b");

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  EXPECT_THAT(world.Sent<StopRanks>(), SizeIs(1)) << "only node-a has a link";
  world.Exit(id, 0, StoppedByAgent());
  world.Release(id, "node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST(CoordinatorRestart, RunningJobsNeverNotice) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  std::vector<ShimReport> shims = world.ShimsOf("node-a");

  world.Restart();
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  world.Advance(absl::Seconds(30));
  world.Reconnect("node-a", shims);
  world.Advance(absl::Minutes(10));

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(world.job(id).last_generation, 1);
}

TEST(CoordinatorRestart, HostsThatStaySilentAreLostAfterTheGrace) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit();
  world.Run(id);

  world.Restart();
  world.Reconnect("node-b", {});
  world.Advance(absl::Seconds(59));
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  world.Advance(absl::Seconds(1));

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.reason(id), HasSubstr("did not come back"));
}

TEST(CoordinatorRestart, StopUnderWayIsRepeatedOnTheNewLink) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobCancelled{1, id, "enough"});
  std::vector<ShimReport> shims = world.ShimsOf("node-a");

  world.Restart();
  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  world.Reconnect("node-a", shims);

  EXPECT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
}

TEST(CoordinatorRestart, GangBeingCheckedIsCheckedAgain) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Place();

  world.Restart();
  world.Reconnect("node-a", {});
  EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  world.AnswerProbes(id);
  world.ReportAll(id, RankPhase::kRunning);

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(world.job(id).last_generation, 1);
}

}  // namespace
}  // namespace llmctl::core
