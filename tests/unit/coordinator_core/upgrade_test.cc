// Hosts whose programs are replaced under running jobs, and records from a backup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/gang.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The agent comes back as another build, beside another llm-trainer.
void ReconnectUpgraded(CoreWorld& world, const std::string& name, std::vector<ShimReport> shims) {
  Node node = world.state.nodes.at(NodeId(name));
  ++node.incarnation;
  node.build_id = "new";
  node.trainer_digest = "trainer-2";
  world.Do(WorkerConnected{node, 77, std::move(shims)});
}

TEST(Upgrade, RunningGangGoesOnUnderANewAgentAndTrainerProgram) {
  CoreWorld world;
  world.Connect("a");
  world.Connect("b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  GenerationId before = world.generation(id);

  ReconnectUpgraded(world, "b", world.ShimsOf("b"));

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(world.generation(id), before);
  EXPECT_THAT(world.Sent<StopRanks>(), IsEmpty());
  EXPECT_EQ(world.state.nodes.at(NodeId("b")).build_id, "new");
}

TEST(Upgrade, HostsWithDifferentTrainersShareNoGang) {
  CoreWorld world;
  world.Connect("a");
  world.Connect("b");
  ReconnectUpgraded(world, "b", {});
  JobId id = world.Submit(CoreWorld::Needs(2));

  world.Place();

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST(Upgrade, TrainerThatIsReplacedBetweenPlacementAndStartDoesNotMixTheGang) {
  CoreWorld world;
  world.Connect("a");
  world.Connect("b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Place();
  world.AnswerProbes(id);
  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(2));

  // Its start was lost with the old link, of the same agent.
  Node node = world.state.nodes.at(NodeId("b"));
  node.trainer_digest = "trainer-2";
  world.Do(WorkerConnected{node, 77, {}});

  EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty());
  EXPECT_THAT(world.HistoryText(id, "failure"), HasSubstr("host b came back with another llm-trainer"));
  EXPECT_NE(world.job(id).phase, JobPhase::kFailed);
}

TEST(Upgrade, StartNamesTheTrainerThatTheGangWasPlacedWith) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Place();

  world.AnswerProbes(id);

  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(1));
  EXPECT_EQ(world.Sent<StartRanks>()[0].trainer_digest, "trainer-1");
  EXPECT_FALSE(world.Sent<StartRanks>()[0].search_checkpoints);
}

// What a restore makes of a record (store/sqlite/backup.h).
constexpr int64_t kFloor = 1000;

TEST(RestoredStore, GangThatStillRunsIsAdopted) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Run(id);
  world.RaiseFloor(id, kFloor);
  GenerationId before = world.generation(id);

  world.Restart();
  world.Reconnect("a", world.ShimsOf("a"));

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(world.generation(id), before);
}

TEST(RestoredStore, GenerationsSinceTheBackupAreStoppedAndNeverUsedAgain) {
  CoreWorld world;
  world.Connect("a");
  world.Capable("a", {kSearchesCheckpoints});
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Run(id);
  world.RaiseFloor(id, kFloor);
  world.Restart();
  // After the backup the job was restarted twice: the host runs a generation that the records do not know.
  ShimReport later;
  later.generation = {id, 3, 3};
  later.phase = RankPhase::kRunning;

  world.Reconnect("a", {later});

  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_EQ(world.Sent<StopRanks>()[0].generation, later.generation);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Place();
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued) << "its device is not free yet";
  world.Do(GangReleased{NodeId("a"), later.generation});
  world.Place();
  EXPECT_EQ(world.job(id).last_generation, kFloor + 1);
  world.AnswerProbes(id);
  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(1));
  EXPECT_TRUE(world.Sent<StartRanks>()[0].search_checkpoints);
}

// The first may fail before what it has found is committed.
TEST(RestoredStore, GenerationsSearchForCheckpointsUntilOneIsCommitted) {
  CoreWorld world;
  world.Connect("a");
  world.Capable("a", {kSearchesCheckpoints});
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.RaiseFloor(id, kFloor);
  world.Run(id);
  EXPECT_TRUE(world.job(id).attempt->search_checkpoints);

  world.FailOnce(id, KilledBy(9));
  world.Place();

  EXPECT_EQ(world.job(id).last_generation, kFloor + 2);
  EXPECT_TRUE(world.job(id).attempt->search_checkpoints);
  world.Run(id);
  world.Commit(id, 10);
  world.FailOnce(id, KilledBy(9));
  world.Place();
  EXPECT_EQ(world.job(id).last_generation, kFloor + 3);
  EXPECT_FALSE(world.job(id).attempt->search_checkpoints);
}

TEST(RestoredStore, CommitOfAGenerationSinceTheBackupIsRefused) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Run(id);
  world.RaiseFloor(id, kFloor);
  CheckpointRecord checkpoint;
  checkpoint.step = 10;

  world.Do(CheckpointOffered{NodeId("a"), {id, 2, 2}, 5, checkpoint});

  ASSERT_THAT(world.Sent<AnswerCheckpoint>(), SizeIs(1));
  EXPECT_FALSE(world.Sent<AnswerCheckpoint>()[0].committed);
  EXPECT_THAT(world.job(id).checkpoints, IsEmpty());
}

TEST(RestoredStore, AgentThatCannotSearchGetsNoRankOfIt) {
  CoreWorld world;
  world.Connect("a");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.RaiseFloor(id, kFloor);
  world.Place();

  world.AnswerProbes(id);

  EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty());
  EXPECT_THAT(world.HistoryText(id, "failure"), HasSubstr("cannot look for checkpoints"));
}

}  // namespace
}  // namespace llmctl::core
