// Strikes, quarantine, burn-in, parole: every transition of coordinator/core/node_ledger.h.
#include "coordinator/core/node_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_core/core_world.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::core {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class NodeLedgerTest : public testing::Test {
 protected:
  NodeLedgerTest() {
    for (const char* name : {"node-a", "node-b", "node-c"}) {
      world.Connect(name);
      Pass(name);
    }
  }

  Node& NodeOf(const std::string& name) { return world.state.nodes.at(NodeId(name)); }
  NodeStanding& Standing(const std::string& name) { return NodeOf(name).standing; }
  NodeTrust TrustOf(const std::string& name) { return Standing(name).trust; }

  void Struck(const std::string& name, double weight, const std::string& reason = "it broke a job") {
    world.Struck(name, {.weight = weight, .reason = reason});
  }

  // The pre-flight that the host was told to run.
  void Finish(const std::string& name, bool passed, bool interrupted = false) {
    PreflightReport report;
    report.passed = passed;
    if (!passed) report.failure = "matmul: expected 4, found 5";
    world.Do(PreflightFinished{NodeId(name), Standing(name).last_preflight, interrupted, report});
  }
  void Pass(const std::string& name) {
    world.Advance(kPreflightIdle);
    Finish(name, true);
  }

  CoreWorld world;
};

TEST_F(NodeLedgerTest, StrikesHalveWithEveryHalfLife) {
  Struck("node-a", 1);
  Struck("node-a", 1);
  EXPECT_THAT(StrikesOf(Standing("node-a"), world.now.wall), DoubleNear(2, 1e-9));

  EXPECT_THAT(StrikesOf(Standing("node-a"), world.now.wall + kStrikeHalfLife), DoubleNear(1, 1e-9));
  EXPECT_THAT(StrikesOf(Standing("node-a"), world.now.wall + 3 * kStrikeHalfLife), DoubleNear(0.25, 1e-9));
  EXPECT_THAT(StrikesOf(Standing("node-a"), world.now.wall - absl::Hours(1)), DoubleNear(2, 1e-9))
      << "a clock that goes back adds nothing";
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
}

TEST_F(NodeLedgerTest, StrikesFarApartNeverReachTheLimit) {
  for (int i = 0; i < 50; ++i) {
    Struck("node-a", 1);
    world.Advance(absl::Hours(30 * 24));
  }

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
  EXPECT_THAT(Standing("node-a").strikes, SizeIs(kStrikesKept));
}

TEST_F(NodeLedgerTest, AtTheLimitTheNodeTakesNoMoreRanksAndWaitingJobsSayWhy) {
  JobId id = world.Submit(CoreWorld::Needs(3));
  for (int i = 0; i < 3; ++i) Struck("node-a", 1, "device 0 fell off the bus");

  EXPECT_FALSE(TakesRanks(NodeOf("node-a")));
  world.Place();

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.state.waiting_reason[id], HasSubstr("device 0 fell off the bus"));
}

TEST_F(NodeLedgerTest, BurnInWaitsUntilNothingRunsThere) {
  JobId id = world.Submit();
  world.Run(id);
  Struck("node-a", 3);

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning) << "what runs goes on";

  world.Exit(id, 0, ExitCode(contract::kExitOk));
  world.ReleaseAll(id);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
  EXPECT_THAT(world.Sent<RunPreflight>(), SizeIs(1));
}

TEST_F(NodeLedgerTest, BurnInThatPassesEndsInParoleAndThatInTrust) {
  Struck("node-a", 3);
  ASSERT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);

  for (int round = 1; round < kBurnInRoundsFirst; ++round) {
    Finish("node-a", true);
    EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn) << round;
    EXPECT_THAT(world.Sent<RunPreflight>(), SizeIs(1)) << "the next round follows at once";
  }
  Finish("node-a", true);

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kParole);
  EXPECT_TRUE(TakesRanks(NodeOf("node-a")));
  EXPECT_THAT(world.Sent<RequestPlan>(), SizeIs(1));
  world.Advance(kParolePeriod);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
}

TEST_F(NodeLedgerTest, BurnInThatFailsIsTriedAgainLaterAndLater) {
  Struck("node-a", 3);

  Finish("node-a", false);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  EXPECT_THAT(WhyNoRanks(NodeOf("node-a")), HasSubstr("its burn-in failed: matmul: expected 4, found 5"));
  world.Advance(kBurnInRetryFirst - absl::Seconds(1));
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  world.Advance(absl::Seconds(1));
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);

  Finish("node-a", false);
  world.Advance(kBurnInRetryFirst);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  world.Advance(kBurnInRetryFirst);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
}

// Coordinators come and go more often than a day passes.
TEST_F(NodeLedgerTest, ParoleGoesOnWhereItWasWhenTheCoordinatorIsRestarted) {
  Struck("node-a", 3);
  for (int round = 0; round < kBurnInRoundsFirst; ++round) Finish("node-a", true);
  ASSERT_EQ(TrustOf("node-a"), NodeTrust::kParole);

  for (int restart = 0; restart < 4; ++restart) {
    world.Advance(kParolePeriod / 4 - absl::Minutes(1));
    ASSERT_EQ(TrustOf("node-a"), NodeTrust::kParole);
    world.Restart();
    world.Reconnect("node-a", {});
  }
  world.Advance(absl::Minutes(4));

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
}

TEST_F(NodeLedgerTest, ARestartOfTheCoordinatorBringsNoBurnInForward) {
  Struck("node-a", 3);
  Finish("node-a", false);
  world.Advance(kBurnInRetryFirst / 2);

  world.Restart();
  world.Reconnect("node-a", {});
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  world.Advance(kBurnInRetryFirst / 2 - absl::Seconds(1));
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kQuarantined);
  world.Advance(absl::Seconds(1));

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
}

TEST_F(NodeLedgerTest, AClockThatJumpsMakesNoWaitLongerThanItIs) {
  Struck("node-a", 3);
  Finish("node-a", false);
  world.now.wall -= absl::Hours(1000);

  world.Restart();
  world.Reconnect("node-a", {});
  world.Advance(kBurnInRetryFirst);

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
}

TEST_F(NodeLedgerTest, OneSeriousStrikeOnParoleIsEnoughAndTheNextBurnInIsLonger) {
  Struck("node-a", 3);
  for (int round = 0; round < kBurnInRoundsFirst; ++round) Finish("node-a", true);
  world.Advance(2 * kStrikeHalfLife);
  ASSERT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
  Struck("node-a", 3);
  for (int round = 0; round < 2 * kBurnInRoundsFirst; ++round) {
    ASSERT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn) << round;
    Finish("node-a", true);
  }
  ASSERT_EQ(TrustOf("node-a"), NodeTrust::kParole);

  Struck("node-a", kStrikeLinkLost);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kParole) << "a silent link is nothing serious";
  Struck("node-a", kStrikeSerious);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
  EXPECT_EQ(Standing("node-a").quarantines, 3);
}

TEST_F(NodeLedgerTest, OnlyAPartOfTheClusterIsEverInQuarantine) {
  Struck("node-a", 3);
  Struck("node-b", 3);

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
  EXPECT_EQ(TrustOf("node-b"), NodeTrust::kTrusted);
  EXPECT_GE(Standing("node-b").strike_score, kStrikesTolerated) << "and yet it is remembered";
}

TEST(NodeLedger, TheOnlyNodeIsNeverQuarantined) {
  CoreWorld world;
  world.Connect("node-a");
  world.Advance(kPreflightIdle);
  PreflightReport report;
  report.failure = "disk: full";

  world.Do(PreflightFinished{NodeId("node-a"), 1, false, report});

  EXPECT_TRUE(TakesRanks(world.state.nodes.at(NodeId("node-a"))));
  world.Advance(absl::Hours(1));
  EXPECT_EQ(world.state.nodes.at(NodeId("node-a")).standing.last_preflight, 1) << "the same test is not repeated";
}

TEST_F(NodeLedgerTest, UncordonTakesThePlaceOfTheBurnIn) {
  Struck("node-a", 3);

  world.Do(NodeUncordoned{1, NodeId("node-a")});

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kParole);
  Finish("node-a", false);
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kParole) << "the burn-in that it ended says nothing any more";
}

TEST_F(NodeLedgerTest, RebootWithoutADrainIsAStrikeAndASilentLinkASmallOne) {
  Node rebooted = NodeOf("node-a");
  rebooted.boot_id = "boot-2";
  world.Lose("node-a");
  world.Do(WorkerConnected{rebooted, 90, {}});
  world.Lose("node-b");
  world.Reconnect("node-b", {});
  world.Do(NodeDrainStarted{1, NodeId("node-c"), "", absl::Minutes(1)});
  Node maintained = NodeOf("node-c");
  maintained.boot_id = "boot-2";
  world.Lose("node-c");
  world.Do(WorkerConnected{maintained, 91, {}});

  EXPECT_EQ(Standing("node-a").strike_score, kStrikeRebooted);
  EXPECT_EQ(Standing("node-b").strike_score, kStrikeLinkLost);
  EXPECT_EQ(Standing("node-c").strike_score, 0) << "whoever drains a host may turn it off";
}

TEST(Preflight, IsRunOncePerBootWhenTheHostHasBeenIdleForAWhile) {
  CoreWorld world;
  world.Connect("node-a");
  EXPECT_THAT(world.Sent<RunPreflight>(), IsEmpty());

  world.Advance(kPreflightIdle);
  ASSERT_THAT(world.Sent<RunPreflight>(), SizeIs(1));
  PreflightReport report;
  report.passed = true;
  report.checks = {{.name = "disk", .outcome = "passed"}};
  world.Do(PreflightFinished{NodeId("node-a"), 1, false, report});
  const NodeStanding& standing = world.state.nodes.at(NodeId("node-a")).standing;
  ASSERT_TRUE(standing.preflight.has_value());
  EXPECT_EQ(standing.preflight->boot_id, "boot-1");
  EXPECT_EQ(standing.preflight->time, world.now.wall);

  world.Lose("node-a");
  world.Reconnect("node-a", {});
  world.Advance(absl::Hours(1));
  EXPECT_EQ(standing.last_preflight, 1);
}

TEST(Preflight, NeverStandsInTheWayOfAJob) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);

  world.Advance(absl::Hours(1));
  const NodeStanding& standing = world.state.nodes.at(NodeId("node-a")).standing;
  EXPECT_EQ(standing.last_preflight, 0) << "the host is busy";

  world.Exit(id, 0, ExitCode(contract::kExitOk));
  world.ReleaseAll(id);
  world.Advance(kPreflightIdle);
  EXPECT_EQ(standing.last_preflight, 1);
}

TEST(Preflight, ThatAJobCutsShortIsRunAgainWhenItIsDone) {
  CoreWorld world;
  world.Connect("node-a");
  world.Advance(kPreflightIdle);
  JobId id = world.Submit();
  world.Run(id);

  world.Do(PreflightFinished{NodeId("node-a"), 1, true, {}});
  const NodeStanding& standing = world.state.nodes.at(NodeId("node-a")).standing;
  EXPECT_FALSE(standing.preflight.has_value());
  world.Exit(id, 0, ExitCode(contract::kExitOk));
  world.ReleaseAll(id);
  world.Advance(kPreflightIdle);

  EXPECT_EQ(standing.last_preflight, 2);
}

TEST(Preflight, ResultOfAnEarlierOrderIsIgnored) {
  CoreWorld world;
  world.Connect("node-a");
  world.Advance(kPreflightIdle);
  world.Lose("node-a");
  world.Reconnect("node-a", {});
  world.Advance(kPreflightIdle);

  world.Do(PreflightFinished{NodeId("node-a"), 1, false, {}});
  const NodeStanding& standing = world.state.nodes.at(NodeId("node-a")).standing;
  EXPECT_FALSE(standing.preflight.has_value());
  world.Do(PreflightFinished{NodeId("node-a"), 2, false, {}});

  EXPECT_TRUE(standing.preflight.has_value());
}

TEST_F(NodeLedgerTest, SurvivesARestartOfTheCoordinator) {
  Struck("node-a", 3);
  Struck("node-b", 1);
  world.Restart();
  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kBurnIn);
  EXPECT_EQ(Standing("node-b").strike_score, 1);

  world.Reconnect("node-a", {});
  EXPECT_THAT(world.Sent<RunPreflight>(), SizeIs(1)) << "the burn-in goes on";
  for (int round = 0; round < kBurnInRoundsFirst; ++round) Finish("node-a", true);
  ASSERT_EQ(TrustOf("node-a"), NodeTrust::kParole);
  world.Restart();
  world.Advance(kParolePeriod);

  EXPECT_EQ(TrustOf("node-a"), NodeTrust::kTrusted);
}

}  // namespace
}  // namespace llmctl::core
