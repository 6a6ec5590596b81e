#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/node_ledger.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(JobHung, EndsTheAttemptWithTheVerdictAndTheJobGoesOn) {
  CoreWorld world;
  world.Connect("node-a", 2);
  JobId id = world.Submit(CoreWorld::Needs(1, 2));
  world.Run(id);
  GenerationId hung = world.generation(id);

  world.Do(JobHung{hung, "rank 1 never entered all_reduce #7"});

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  EXPECT_TRUE(world.Sent<StopRanks>()[0].failed) << "ranks in collectives would not hear of a plain stop";
  EXPECT_THAT(world.HistoryText(id, "failure"), HasSubstr("the job hangs: rank 1 never entered all_reduce #7"));

  world.ExitAll(id, StoppedByAgent());
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kInfrastructure);
}

TEST(JobHung, TheHostOfTheRankThatIsWaitedForIsAvoidedAndLightlyStruck) {
  CoreWorld world;
  for (const char* node : {"node-a", "node-b", "node-c"}) world.Connect(node);
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  const NodeId waits = world.job(id).attempt->ranks[0].node;
  const NodeId culprit = world.job(id).attempt->ranks[1].node;

  world.Do(JobHung{world.generation(id), "rank 1 never entered all_reduce #7", {1}});
  world.ExitAll(id, StoppedByAgent());
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).failure.outlook, Outlook::kOtherNode);
  EXPECT_THAT(world.job(id).avoided_nodes, ElementsAre(culprit));
  EXPECT_EQ(world.state.nodes.at(culprit).standing.strikes.at(0).weight, kStrikeHung);
  EXPECT_LT(kStrikeHung, 1) << "it may be the program's doing as well";
  EXPECT_THAT(world.state.nodes.at(waits).standing.strikes, IsEmpty());
  world.Run(id);
  for (const RankState& rank : world.job(id).attempt->ranks) EXPECT_NE(rank.node, culprit);
}

TEST(JobHung, WhereSuspectsAreOnSeveralHostsNoneIsAccused) {
  CoreWorld world;
  for (const char* node : {"node-a", "node-b"}) world.Connect(node);
  JobId id = world.Submit(CoreWorld::Needs(2));
  for (std::vector<int> suspects : {std::vector<int>{0, 1}, std::vector<int>{}, std::vector<int>{7}}) {
    world.Run(id);

    world.Do(JobHung{world.generation(id), "look at the network", suspects});
    world.ExitAll(id, StoppedByAgent());
    world.ReleaseAll(id);
    world.Advance(absl::Minutes(1));

    EXPECT_THAT(world.job(id).avoided_nodes, IsEmpty());
    for (const auto& [node, known] : world.state.nodes) EXPECT_THAT(known.standing.strikes, IsEmpty());
  }
}

TEST(JobHung, OfAnEarlierGenerationChangesNothing) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  GenerationId earlier = world.generation(id);
  world.FailOnce(id, KilledBy(9));
  world.Run(id);

  world.Do(JobHung{earlier, "late"});

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
}

TEST(JobHung, WhileTheGangIsBeingStoppedItExplainsNothing) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobCancelled{.request = 1, .job = id});

  world.Do(JobHung{world.generation(id), "it waits for its end"});

  EXPECT_THAT(world.Sent<StopRanks>(), IsEmpty());
  EXPECT_FALSE(world.job(id).attempt->failure.has_value());
}

TEST(StragglerSeen, IsToldAndDecidesNothing) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Do(StragglerSeen{world.generation(id), "rank 0 is slow"});

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(world.HistoryText(id, "straggler"), "rank 0 is slow");
}

}  // namespace
}  // namespace llmctl::core
