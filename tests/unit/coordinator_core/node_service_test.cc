// Cordon, drain, uncordon: where ranks may go, and how jobs leave.
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "coordinator/core/deadlines.h"
#include "coordinator/core/snapshot_for_placement.h"
#include "tests/unit/coordinator_core/core_world.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NodeServiceTest : public testing::Test {
 protected:
  NodeServiceTest() {
    world.Connect("node-a");
    world.Connect("node-b");
  }

  void Cordon(const std::string& node) { world.Do(NodeCordoned{1, NodeId(node), "new disks"}); }
  void Uncordon(const std::string& node) { world.Do(NodeUncordoned{1, NodeId(node)}); }
  void Drain(const std::string& node, absl::Duration deadline = absl::Minutes(5)) {
    world.Do(NodeDrainStarted{1, NodeId(node), "new disks", deadline});
  }
  NodeService ServiceOf(const std::string& node) { return world.state.nodes.at(NodeId(node)).standing.service; }
  std::string HostOf(const JobId& id) { return world.job(id).attempt->ranks.front().node.value(); }

  CoreWorld world;
};

TEST_F(NodeServiceTest, CordonedNodeGetsNoRanksAndTheReasonSaysSo) {
  Cordon("node-a");
  EXPECT_TRUE(world.LastReply().ok());
  EXPECT_THAT(world.Sent<RequestPlan>(), testing::SizeIs(1));

  JobId first = world.Submit();
  JobId second = world.Submit();
  world.Place();

  EXPECT_EQ(HostOf(first), "node-b");
  EXPECT_EQ(world.job(second).phase, JobPhase::kQueued);
  EXPECT_THAT(world.state.waiting_reason[second], HasSubstr("taking no ranks: node-a (cordoned: new disks)"));

  Uncordon("node-a");
  world.Place();
  EXPECT_EQ(HostOf(second), "node-a");
}

TEST_F(NodeServiceTest, CordonLeavesWhatRunsAlone) {
  JobId id = world.Submit();
  world.Run(id);

  Cordon(HostOf(id));

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_THAT(world.Sent<StopRanks>(), IsEmpty());
}

TEST_F(NodeServiceTest, PlanMadeBeforeTheCordonIsDroppedAndMadeAnew) {
  JobId id = world.Submit();
  Plan plan = placement::MakePlan(MakeSnapshot(world.state));
  ASSERT_EQ(plan.gangs.at(0).slots.at(0).node, NodeId("node-a"));
  Cordon("node-a");

  world.Do(PlanReady{plan});

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.Sent<RequestPlan>(), testing::SizeIs(1));
}

TEST_F(NodeServiceTest, AllHostsClosedIsSaidAsSuch) {
  Cordon("node-a");
  Drain("node-b");
  JobId id = world.Submit();
  world.Place();

  EXPECT_THAT(world.state.waiting_reason[id], HasSubstr("no connected host takes ranks"));
  EXPECT_THAT(world.state.waiting_reason[id], HasSubstr("node-b (drained: new disks)"));
}

TEST_F(NodeServiceTest, UnknownNodeIsNotFound) {
  Cordon("node-x");
  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kNotFound);
  Uncordon("node-x");
  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kNotFound);
  Drain("node-x");
  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kNotFound);
}

TEST_F(NodeServiceTest, DrainOfAnIdleNodeIsOverAtOnce) {
  Drain("node-a");

  EXPECT_TRUE(world.LastReply().ok());
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, RunningJobYieldsAndGoesOnElsewhereAtNoCostToItsBudgets) {
  JobId id = world.Submit();
  world.Run(id);
  ASSERT_EQ(HostOf(id), "node-a");

  Drain("node-a");
  ASSERT_THAT(world.Sent<StopRanks>(), testing::SizeIs(1));
  EXPECT_TRUE(world.Sent<StopRanks>()[0].checkpoint_first);
  EXPECT_THAT(world.Sent<StopRanks>()[0].reason, HasSubstr("host node-a is being drained"));
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDraining);
  world.Commit(id, 17);
  world.Exit(id, 0, ExitCode(contract::kExitYielded));
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDraining) << "the host has not said that nothing is left";
  world.ReleaseAll(id);

  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.HistoryText(id, "queued"), HasSubstr("host node-a is being drained; it goes on from step 17"));
  world.Run(id);
  EXPECT_EQ(HostOf(id), "node-b");
  EXPECT_EQ(world.job(id).user_restarts, 0);
  EXPECT_EQ(world.job(id).infrastructure_failures, 0);
}

TEST_F(NodeServiceTest, JobThatIsBeingCheckedGoesBackToTheQueueAtOnce) {
  JobId id = world.Submit();
  world.Place();
  ASSERT_EQ(world.job(id).phase, JobPhase::kStarting);

  Drain("node-a");

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, JobThatStartsIsStoppedWithoutACheckpoint) {
  JobId id = world.Submit();
  world.Place();
  world.AnswerProbes(id);

  Drain("node-a");

  ASSERT_THAT(world.Sent<StopRanks>(), testing::SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST_F(NodeServiceTest, GangOnSeveralHostsLeavesAllOfThem) {
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  Drain("node-b");

  EXPECT_THAT(world.Sent<StopRanks>(), testing::SizeIs(2));
  world.ExitAll(id, ExitCode(contract::kExitYielded));
  world.ReleaseAll(id);
  world.Place();
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.state.waiting_reason[id], HasSubstr("node-b (drained"));
}

TEST_F(NodeServiceTest, WhatHasNotLeftAtTheDeadlineIsStopped) {
  JobId id = world.Submit();
  world.Run(id);
  Drain("node-a", absl::Seconds(20));

  world.Advance(absl::Seconds(20));

  ASSERT_THAT(world.Sent<StopRanks>(), testing::SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  EXPECT_EQ(world.Sent<StopRanks>()[0].grace, kStopGrace);
  EXPECT_TRUE(world.state.nodes.at(NodeId("node-a")).standing.drain_overdue);
  world.Exit(id, 0, StoppedByAgent());
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, DeadlineEndsTheYieldOfASuspendTooWhichStaysASuspend) {
  JobId id = world.Submit();
  world.Run(id);
  world.Do(JobSuspended{1, id});
  Drain("node-a", absl::Seconds(20));
  EXPECT_THAT(world.Sent<StopRanks>(), IsEmpty());

  world.Advance(absl::Seconds(20));

  ASSERT_THAT(world.Sent<StopRanks>(), testing::SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
  world.Exit(id, 0, StoppedByAgent());
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kSuspended);
}

TEST_F(NodeServiceTest, NoDeadlineAtAllStopsAtOnce) {
  JobId id = world.Submit();
  world.Run(id);

  Drain("node-a", absl::ZeroDuration());

  ASSERT_THAT(world.Sent<StopRanks>(), testing::SizeIs(1));
  EXPECT_FALSE(world.Sent<StopRanks>()[0].checkpoint_first);
}

TEST_F(NodeServiceTest, UncordonEndsADrainAndItsDeadline) {
  JobId id = world.Submit();
  world.Run(id);
  Drain("node-a", absl::Seconds(20));

  Uncordon("node-a");
  world.Exit(id, 0, ExitCode(contract::kExitYielded));
  world.ReleaseAll(id);
  world.Run(id);
  EXPECT_EQ(HostOf(id), "node-a") << "ranks go where they were";
  world.Advance(absl::Minutes(10));

  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kOpen);
}

TEST_F(NodeServiceTest, FailureOfItsOwnDuringADrainIsStillAFailure) {
  JobId id = world.Submit();
  world.Run(id);
  Drain("node-a");

  world.Exit(id, 0, ExitCode(contract::kExitUser, "loss is NaN"));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
}

TEST_F(NodeServiceTest, CancelWinsOverADrain) {
  JobId id = world.Submit();
  world.Run(id);
  Drain("node-a");

  world.Do(JobCancelled{2, id, "enough"});
  world.Exit(id, 0, StoppedByAgent());
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kCancelled);
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, LostNodeIsDrainedOnlyWhenItHasSaidThatNothingIsLeft) {
  JobId id = world.Submit();
  world.Run(id);
  world.Lose("node-a");
  Drain("node-a");
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDraining);

  world.Reconnect("node-a", {});

  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, SurvivesNewAgentsAndRestartsOfTheCoordinator) {
  JobId id = world.Submit();
  world.Run(id);
  Drain("node-a", absl::Seconds(20));
  world.Restart();
  world.Reconnect("node-a", world.ShimsOf("node-a"));
  world.Connect("node-b");
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDraining);
  EXPECT_EQ(world.job(id).attempt->stop, StopRequest::kYield);

  // The deadline begins anew, after the grace in which hosts may come back.
  world.Advance(absl::Seconds(80));
  EXPECT_EQ(world.job(id).attempt->stop, StopRequest::kPlain);
  world.Exit(id, 0, StoppedByAgent());
  world.ReleaseAll(id);

  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
  world.Restart();
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
}

TEST_F(NodeServiceTest, RepeatedRequestsAreFine) {
  Cordon("node-a");
  Cordon("node-a");
  EXPECT_TRUE(world.LastReply().ok());
  Drain("node-a");
  Drain("node-a");
  EXPECT_TRUE(world.LastReply().ok());
  Cordon("node-a");
  EXPECT_TRUE(world.LastReply().ok());
  EXPECT_EQ(ServiceOf("node-a"), NodeService::kDrained);
  Uncordon("node-a");
  Uncordon("node-a");
  EXPECT_TRUE(world.LastReply().ok());
}

// Processor time of a thousand submissions to a cluster of so many hosts, all busy and with a pre-flight to come: as
// after an upgrade of all hosts.
double CostOfSubmissions(int busy_hosts) {
  State state;
  for (int i = 0; i < busy_hosts; ++i) {
    Node node = CoreWorld::MakeNode(absl::StrCat("node-", i));
    node.standing.preflight_wanted = true;
    state.connected.insert(node.id);
    state.unsettled.insert(node.id);
    state.device_owner[{node.id, 0}] = {JobId("j-0"), 1, 1};
    state.nodes.emplace(node.id, node);
  }
  JobSubmitted submitted;
  submitted.name = "train";
  submitted.project = "default";
  std::clock_t begin = std::clock();
  for (int i = 0; i < 1000; ++i) Step(state, submitted, {absl::Seconds(i), absl::FromUnixSeconds(i)});
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(SettleNodes, ASubmissionCostsTheSameHoweverManyHostsAreToBeTested) {
  double alone = CostOfSubmissions(0);

  EXPECT_LT(CostOfSubmissions(3000), 5 * alone + 0.02) << "a thousand submissions without hosts took " << alone << " s";
}

}  // namespace
}  // namespace llmctl::core
