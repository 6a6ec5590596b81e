// Which starts an agent accepts: each generation once, never an older one, across crashes and races.
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

void ExpectRefused(const Host& host, const std::string& why) {
  EXPECT_THAT(host.Last<SpawnShim>(), IsEmpty());
  ASSERT_THAT(host.Sent<RankUpdate>(), SizeIs(1));
  RankUpdate update = host.Sent<RankUpdate>()[0];
  EXPECT_EQ(update.phase, RankPhase::kExited);
  EXPECT_TRUE(update.exit->start_failed);
  EXPECT_THAT(update.exit->fatal_message, HasSubstr(why));
}

TEST(Fencing, FenceIsPersistedBeforeTheFirstProcessStarts) {
  Host host = Host().Start().Connect();

  host.Do(StartOrder(1, {{0, 0}, {1, 1}}));

  ASSERT_GE(host.last.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<PersistFences>(host.last[0]));
  ASSERT_THAT(host.Last<SpawnShim>(), SizeIs(2));
  SpawnShim second = host.Last<SpawnShim>()[1];
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.assignment.device, 1);
  EXPECT_EQ(second.assignment.world_size, 2);
  EXPECT_EQ(host.state.fences.at(JobId("j-1")), 1);
}

TEST(Fencing, TheSameStartTwiceStartsNothingTwice) {
  Host host = Host().Start().Connect().Run(1);

  host.Do(StartOrder(1));

  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Fencing, ARepeatedStartStartsOnlyMissingRanks) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}});

  host.Do(StartOrder(1, {{0, 0}, {1, 1}}));

  ASSERT_THAT(host.Last<SpawnShim>(), SizeIs(1));
  EXPECT_EQ(host.Last<SpawnShim>()[0].rank, 1);
}

TEST(Fencing, AnOlderGenerationIsRefusedAndReportedAsReleased) {
  Host host = Host().Start().Connect().Run(5);

  host.Do(StartOrder(4, {{0, 1}}));

  ExpectRefused(host, "generation 5 was started or stopped here before");
  ASSERT_THAT(host.Sent<GangReleased>(), SizeIs(1));
  EXPECT_EQ(host.Sent<GangReleased>()[0].generation, Generation(4));
}

TEST(Fencing, TheFenceSurvivesACrashOfTheAgent) {
  Host host = Host().Start().Connect().Do(StartOrder(5)).Crash().Start().Connect();

  host.Do(StartOrder(5));

  ExpectRefused(host, "generation 5 was started or stopped here before");
}

TEST(Fencing, AStopThatOvertakesItsStartKeepsItFromStarting) {
  Host host = Host().Start().Connect();

  host.Do(StopOrdered{.generation = Generation(3)});

  EXPECT_THAT(host.Last<PersistFences>(), SizeIs(1));
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
  host.Do(StartOrder(3));
  ExpectRefused(host, "generation 3 was started or stopped here before");
}

TEST(Fencing, AStartWhileTheGenerationIsBeingStoppedStartsNoMissingRank) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}});
  host.Do(StopOrdered{.generation = Generation(1), .grace = absl::Seconds(30)});

  host.Do(StartOrder(1, {{0, 0}, {1, 1}}));

  ExpectRefused(host, "being stopped");
  EXPECT_THAT(host.Sent<GangReleased>(), IsEmpty());
}

TEST(Fencing, ANewerGenerationKillsTheOlderAtOnce) {
  Host host = Host().Start().Connect().Run(1);

  host.Do(StartOrder(2, {{0, 1}}));

  ASSERT_THAT(host.Last<SendToShim>(), SizeIs(1));
  EXPECT_EQ(host.Last<SendToShim>()[0].generation, Generation(1));
  EXPECT_EQ(host.ToShims<contract::Kill>()[0].grace_seconds, 0);
  EXPECT_THAT(host.Last<SpawnShim>(), SizeIs(1));
}

TEST(Fencing, ADeviceIsNotGivenToASecondRank) {
  Host host = Host().Start().Connect().Run(1);
  StartOrdered other = StartOrder(1);
  other.generation = Generation(1, "j-2");

  host.Do(other);

  ExpectRefused(host, "device 0 is still used by rank 0 of generation 1 (attempt 1) of job j-1");
}

TEST(Fencing, ADeviceIsFreeOnceItsRankHasExited) {
  Host host = Host().Start().Connect().Run(1).Exit(1, 0);

  host.Do(StartOrder(2));

  EXPECT_THAT(host.Last<SpawnShim>(), SizeIs(1));
}

TEST(Fencing, AnUnknownDeviceIsRefused) {
  Host host = Host().Start().Connect();

  host.Do(StartOrder(1, {{0, 9}}));

  ExpectRefused(host, "no device 9 (it has 4)");
}

TEST(Fencing, AnOrderThatCannotBeReadIsAConfigError) {
  Host host = Host().Start().Connect();
  StartOrdered order = StartOrder(1);
  order.refusal = "faultTolerance.orphanTimeout: not a duration";

  host.Do(order);

  ExpectRefused(host, "orphanTimeout");
  EXPECT_EQ(host.Sent<RankUpdate>()[0].exit->fatal_class, "config");
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

}  // namespace
}  // namespace llmctl::agent
