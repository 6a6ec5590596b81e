// How ranks are stopped: on order, for a checkpoint first, before their shim has answered, as orphans.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Stop, KillsEveryRankWithTheGrace) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}});

  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(30)});

  ASSERT_THAT(host.ToShims<contract::Kill>(), SizeIs(2));
  EXPECT_EQ(host.ToShims<contract::Kill>()[0].grace_seconds, 30);
}

TEST(Stop, OfAnUnknownGenerationAnswersThatItIsReleased) {
  Host host = Host().Start().Connect();

  host.Do(StopOrdered{.generation = Generation(1)});

  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

TEST(Stop, OfAGangThatHasExitedAnswersAgain) {
  Host host = Host().Start().Connect().Run(1).Exit(1, 0);

  host.Do(StopOrdered{.generation = Generation(1)});

  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

TEST(Stop, ReachesAShimThatWasStillStarting) {
  Host host = Host().Start().Connect().Do(StartOrder(1));
  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(3)});
  EXPECT_THAT(host.Last<SendToShim>(), IsEmpty());

  host.Do(ShimConnected{Generation(1), 0});

  ASSERT_THAT(host.ToShims<contract::Kill>(), SizeIs(1));
  EXPECT_EQ(host.ToShims<contract::Kill>()[0].grace_seconds, 3);
}

TEST(Stop, CheckpointFirstYieldsThenKillsAtTheDeadline) {
  Host host = Host().Start().Connect().Run(1);

  host.Do(StopOrdered{
      .generation = Generation(1), .grace = absl::Seconds(60), .reason = "suspended", .checkpoint_first = true});
  ASSERT_THAT(host.ToShims<contract::Yield>(), SizeIs(1));
  EXPECT_EQ(host.ToShims<contract::Yield>()[0].deadline_seconds, 60);
  EXPECT_EQ(host.Last<ArmTimer>()[0].delay, absl::Seconds(60));
  host.Fire(Timer::Purpose::kYieldDeadline);

  EXPECT_THAT(host.ToShims<contract::Kill>(), SizeIs(1));
}

TEST(Stop, ACancelOverridesAYield) {
  Host host = Host().Start().Connect().Run(1);
  StopOrdered yield = {.generation = Generation(1), .grace = absl::Seconds(60), .checkpoint_first = true};
  host.Do(yield);

  host.Do(StopOrdered{.generation = Generation(1)});
  EXPECT_THAT(host.ToShims<contract::Kill>(), SizeIs(1));

  // And is not softened by a late repetition of the yield or by its deadline.
  host.Do(yield);
  EXPECT_THAT(host.ToShims<contract::Yield>(), IsEmpty());
  host.Fire(Timer::Purpose::kYieldDeadline);
  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Stop, AskingForACheckpointReachesReadyRanksOnly) {
  Host host = Host().Start().Connect().Run(1);
  host.Do(CheckpointOrdered{Generation(1)});
  EXPECT_THAT(host.ToShims<contract::CheckpointRequest>(), SizeIs(1));

  host.Exit(1, 0).Do(CheckpointOrdered{Generation(1)});
  EXPECT_THAT(host.last, IsEmpty());
}

// The order in which the shim of rank 0 hears of things.
std::vector<std::string> NamesToRank0(const Host& host) {
  std::vector<std::string> names;
  for (const SendToShim& command : host.Last<SendToShim>()) {
    if (command.rank == 0) names.emplace_back(contract::MessageName(command.message));
  }
  return names;
}

TEST(Stop, AfterAFailureRanksArePicturedAndEndAtOnceRatherThanInACollective) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}});

  host.Do(StopOrdered{
      .generation = Generation(1), .grace = absl::Seconds(2), .reason = "another part failed", .failed = true});

  EXPECT_THAT(NamesToRank0(host), ElementsAre("take_picture", "stop", "kill"));
  EXPECT_EQ(host.ToShims<contract::TakePicture>().at(1).reason, "another part failed");
}

TEST(Stop, WithoutAFailureNobodyIsPictured) {
  Host host = Host().Start().Connect().Run(1);

  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(2)});

  EXPECT_THAT(NamesToRank0(host), ElementsAre("kill"));
}

TEST(Stop, AFailureReachesAShimThatConnectsLater) {
  Host host = Host().Start().Connect().Do(StartOrder(1));
  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(2), .failed = true});

  host.Do(ShimConnected{Generation(1), 0});

  EXPECT_THAT(NamesToRank0(host), ElementsAre("take_picture", "stop", "kill"));
}

TEST(Evidence, IsCollectedOnceWhenTheLastRankOfABadEndHasGone) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}});

  host.Exit(1, 0, {.signal = 9});
  EXPECT_THAT(host.Last<CollectEvidence>(), IsEmpty());
  host.Exit(1, 1, {.signal = 15, .stopped_by_agent = true});
  EXPECT_THAT(host.Last<CollectEvidence>(), SizeIs(1));
  host.Exit(1, 1, {.signal = 15, .stopped_by_agent = true});
  EXPECT_THAT(host.Last<CollectEvidence>(), IsEmpty());
}

TEST(Evidence, IsCollectedOnAHostWhoseOwnRanksWereWell) {
  Host host = Host().Start().Connect().Run(1);
  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(2), .failed = true});

  host.Exit(1, 0, {.signal = 15, .stopped_by_agent = true});

  EXPECT_THAT(host.Last<CollectEvidence>(), SizeIs(1));
}

TEST(Evidence, NoneIsCollectedOfAGoodEnd) {
  EXPECT_THAT(Host().Start().Connect().Run(1).Exit(1, 0).Last<CollectEvidence>(), IsEmpty());
  EXPECT_THAT(Host().Start().Connect().Run(1).Exit(1, 0, {.exit_code = 10}).Last<CollectEvidence>(), IsEmpty());
  Host cancelled = Host().Start().Connect().Run(1);
  cancelled.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(2)});
  EXPECT_THAT(cancelled.Exit(1, 0, {.signal = 9, .stopped_by_agent = true}).Last<CollectEvidence>(), IsEmpty());
}

TEST(Orphan, RanksAreStoppedWhenTheCoordinatorStaysAwayForTheJobsTimeout) {
  Host host = Host().Start().Connect().Run(1).Disconnect();
  ASSERT_THAT(host.Last<ArmTimer>(), SizeIs(1));
  EXPECT_EQ(host.Last<ArmTimer>()[0].delay, absl::Minutes(10));

  host.Fire(Timer::Purpose::kOrphan);
  EXPECT_THAT(host.ToShims<contract::Kill>(), SizeIs(1));
  host.Exit(1, 0, {.signal = 15, .stopped_by_agent = true}).Do(CoordinatorConnected{});

  ExitRecord exit = *host.Sent<Hello>()[0].shims.at(0).exit;
  EXPECT_EQ(exit.fatal_class, "orphaned");
  EXPECT_THAT(exit.fatal_message, HasSubstr("orphan timeout of 10m"));
}

TEST(Orphan, AReturnInTimeDisarmsTheTimer) {
  Host host = Host().Start().Connect().Run(1).Disconnect().Connect();

  host.Fire(Timer::Purpose::kOrphan);

  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Orphan, AnAgentThatStartsCountsFromItsStart) {
  Host host = Host().Do(ShimFound{Generation(1), 0, 0, absl::Minutes(1)}).Start();
  host.Do(ShimConnected{Generation(1), 0}).Say(1, 0, contract::CaughtUp{});

  host.Fire(Timer::Purpose::kOrphan);

  EXPECT_THAT(host.ToShims<contract::Kill>(), SizeIs(1));
}

}  // namespace
}  // namespace llmctl::agent
