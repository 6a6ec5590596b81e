#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/deadlines.h"
#include "coordinator/core/gang.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(GangStart, ChecksTheFirstHostThenTheOthersThenStartsAll) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));

  world.Place();
  ASSERT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  EXPECT_TRUE(world.Sent<ProbeHost>()[0].write);
  EXPECT_EQ(world.Sent<ProbeHost>()[0].node, NodeId("node-a"));
  std::string nonce = world.Sent<ProbeHost>()[0].nonce;

  world.Do(world.Passed(id, "node-a"));
  ASSERT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  EXPECT_FALSE(world.Sent<ProbeHost>()[0].write);
  EXPECT_EQ(world.Sent<ProbeHost>()[0].node, NodeId("node-b"));
  EXPECT_EQ(world.Sent<ProbeHost>()[0].nonce, nonce);
  EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty());

  world.Do(world.Passed(id, "node-b"));
  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(2));
  EXPECT_THAT(world.Sent<StartRanks>()[0].slots, SizeIs(2));

  world.ReportAll(id, RankPhase::kRunning);
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
  EXPECT_THAT(world.History(id), ElementsAre("submitted", "placed", "starting", "running"));
}

TEST(GangStart, CountersArePersistedBeforeTheFirstCommandThatCarriesThem) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();

  world.Place();

  EXPECT_EQ(world.generation(id), (GenerationId{id, 1, 1}));
  size_t persist = 0, probe = 0;
  for (size_t i = 0; i < world.last.size(); ++i) {
    if (std::holds_alternative<PersistJob>(world.last[i])) persist = i;
    if (std::holds_alternative<ProbeHost>(world.last[i])) probe = i;
  }
  EXPECT_LT(persist, probe);
}

TEST(GangStart, HostsWithoutASharedDirectoryFailTheJobAndAreNamed) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Place();

  for (int round = 0; round < kProbeRounds; ++round) {
    ASSERT_EQ(world.job(id).phase, JobPhase::kStarting);
    world.Do(world.Passed(id, "node-a"));
    world.Do(world.NotPassed(id, "node-b", "no such file in /ckpt"));
  }

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kUser);
  EXPECT_EQ(world.job(id).failure.outlook, Outlook::kNever);
  EXPECT_THAT(world.reason(id), HasSubstr("hosts node-a and node-b do not share the checkpoint directory /ckpt"));
  EXPECT_THAT(world.reason(id), HasSubstr("mount a shared file system"));
  EXPECT_THAT(world.state.device_owner, IsEmpty()) << "no process was ever asked for";
}

// Found by the simulator: the writer's link broke, so it removed its nonce before the other host had looked.
TEST(GangStart, NonceThatIsMissedOnceIsWrittenAnew) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Place();
  std::string nonce = world.Sent<ProbeHost>().at(0).nonce;
  world.Do(world.Passed(id, "node-a"));

  world.Do(world.NotPassed(id, "node-b", "no such file in /ckpt"));
  ASSERT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  EXPECT_TRUE(world.Sent<ProbeHost>()[0].write);
  EXPECT_NE(world.Sent<ProbeHost>()[0].nonce, nonce);
  world.AnswerProbes(id);

  EXPECT_THAT(world.Sent<StartRanks>(), SizeIs(2));
}

// Found by the simulator: an answer that a link repeated counted in the next round, and failed the job in the last.
TEST(GangStart, AnswerOfAnEarlierRoundDoesNotCount) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Place();
  world.Do(world.Passed(id, "node-a"));
  ProbeAnswered early = world.NotPassed(id, "node-b", "no such file in /ckpt");
  world.Do(early);
  world.Do(world.Passed(id, "node-a"));

  for (int i = 0; i < kProbeRounds; ++i) {
    world.Do(early);
    EXPECT_THAT(world.last, IsEmpty());
  }
  world.Do(world.Passed(id, "node-b"));

  EXPECT_THAT(world.Sent<StartRanks>(), SizeIs(2));
}

TEST(GangStart, AFileSystemThatFailsTheCheckIsNotTheJobsFault) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(CoreWorld::Needs(1));
  world.Place();
  ProbeAnswered full = world.NotPassed(id, "node-a", "checkpoint.directory: No space left on device");
  full.infrastructure = true;

  world.Do(full);

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kInfrastructure);
  EXPECT_THAT(world.reason(id), HasSubstr("No space left on device"));
  world.Run(id);
}

TEST(GangStart, DifferentDatasetsFailTheJobAndBothDigestsAreNamed) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Place();
  world.Do(world.Passed(id, "node-a", "d1"));

  world.Do(world.Passed(id, "node-b", "d2"));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kUser);
  EXPECT_EQ(world.job(id).failure.outlook, Outlook::kNever);
  EXPECT_THAT(world.reason(id), HasSubstr("node-a has digest d1"));
  EXPECT_THAT(world.reason(id), HasSubstr("node-b has d2"));
}

TEST(GangStart, SilentCheckIsAnInfrastructureFailureAndTriedAgain) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Place();

  world.Advance(kProbeDeadline);

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kInfrastructure);
  EXPECT_THAT(world.reason(id), HasSubstr("node-a did not finish the check"));
}

TEST(GangStart, RanksThatAreNotReadyInTimeAreStopped) {
  CoreWorld world;
  world.Connect("node-a", 2);
  JobId id = world.Submit(CoreWorld::Needs(1, 2));
  world.Place();
  world.AnswerProbes(id);
  world.Do(RankChanged{NodeId("node-a"), world.generation(id), 0, RankPhase::kRunning, 1, {}});

  world.Advance(kStartDeadline);

  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping);
  ASSERT_THAT(world.Sent<StopRanks>(), SizeIs(1));
  world.ExitAll(id, StoppedByAgent());
  world.ReleaseAll(id);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.reason(id), HasSubstr("only 1 of 2 ranks were ready"));
}

TEST(GangStart, StalePlanThatWantsATakenDeviceIsDroppedAndPlannedAgain) {
  CoreWorld world;
  world.Connect("node-a");
  JobId first = world.Submit();
  Plan stale;
  stale.revision = world.state.counters.revision;
  JobId second = world.Submit();
  stale.gangs.push_back({second, {{NodeId("node-a"), 0}}});
  world.Place();
  ASSERT_EQ(world.job(first).phase, JobPhase::kStarting);

  world.Do(PlanReady{stale});

  EXPECT_EQ(world.job(second).phase, JobPhase::kQueued);
  EXPECT_THAT(world.Sent<RequestPlan>(), SizeIs(1));
  EXPECT_FALSE(world.job(second).attempt.has_value());
}

TEST(GangStart, HalfAGangIsNeverBegun) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(CoreWorld::Needs(2));
  Plan plan;
  plan.revision = world.state.counters.revision;
  plan.gangs.push_back({id, {{NodeId("node-a"), 0}}});

  world.Do(PlanReady{plan});

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

TEST(GangStart, WaitingReasonIsShownAndNotPersisted) {
  CoreWorld world;
  JobId id = world.Submit();

  world.Place();

  EXPECT_THAT(world.state.waiting_reason.at(id), HasSubstr("no host is connected"));
  EXPECT_THAT(world.Sent<PersistJob>(), IsEmpty());
}

TEST(GangStart, LostStartIsRepeatedOnTheNextLink) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Place();
  world.AnswerProbes(id);

  world.Reconnect("node-a", {});

  EXPECT_THAT(world.Sent<StartRanks>(), SizeIs(1));
  EXPECT_EQ(world.job(id).last_generation, 1);
}

TEST(GangStart, LostCheckIsRepeatedOnTheNextLink) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Place();

  world.Reconnect("node-a", {});

  EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  EXPECT_EQ(world.job(id).phase, JobPhase::kStarting);
}

TEST(GangStart, HostsOfEarlierAttemptsAreRememberedForTheirLogs) {
  CoreWorld world;
  world.Connect("node-a");
  JobRequirements needs = CoreWorld::Needs(1);
  needs.max_restarts = 100;
  JobId id = world.Submit(needs);

  for (size_t i = 0; i <= kPastAttemptsMost; ++i) {
    world.Run(id);
    world.FailOnce(id, ExitCode(65));
  }
  world.Place();

  const std::vector<PastAttempt>& past = world.job(id).past_attempts;
  ASSERT_THAT(past, SizeIs(kPastAttemptsMost)) << "the oldest is forgotten";
  EXPECT_EQ(past.front(), (PastAttempt{2, 2, {NodeId("node-a")}}));
  EXPECT_EQ(past.back().number, world.job(id).attempt->number - 1);
}

TEST(GangStart, GoesOnFromTheCommittedCheckpoints) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Commit(id, 10);
  world.Commit(id, 20);
  world.FailOnce(id, KilledBy(9));

  world.Place();

  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(1));
  ASSERT_THAT(world.Sent<StartRanks>()[0].checkpoints, SizeIs(2));
  EXPECT_EQ(world.Sent<StartRanks>()[0].checkpoints[0].step, 20);
  EXPECT_EQ(world.job(id).attempt->start_checkpoint_step, 20);
}

TEST(GangStart, AGangThatHasRunStartsAgainOnItsHostsWithoutChecks) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  world.FailOnce(id, KilledBy(9));

  world.Place();

  EXPECT_THAT(world.Sent<ProbeHost>(), IsEmpty());
  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(2));
  EXPECT_EQ(world.Sent<StartRanks>()[0].generation, (GenerationId{id, 2, 2}));
  size_t persist = 0, start = 0;
  for (size_t i = 0; i < world.last.size(); ++i) {
    if (std::holds_alternative<PersistJob>(world.last[i])) persist = i;
    if (start == 0 && std::holds_alternative<StartRanks>(world.last[i])) start = i;
  }
  EXPECT_LT(persist, start);
  world.ReportAll(id, RankPhase::kRunning);
  EXPECT_EQ(world.job(id).phase, JobPhase::kRunning);
}

TEST(GangStart, AHostWhoseAgentOrKernelWasStartedAnewIsCheckedAgain) {
  for (bool reboot : {false, true}) {
    CoreWorld world;
    world.Connect("node-a");
    world.Connect("node-b");
    JobId id = world.Submit(CoreWorld::Needs(2));
    world.Run(id);
    Node node = world.state.nodes.at(NodeId("node-b"));
    node.incarnation = 2;
    if (reboot) node.boot_id = "boot-2";

    // Its rank is gone with the agent.
    world.Do(WorkerConnected{node, 77, {}});
    world.Exit(id, 0, ExitCode(67));
    world.ReleaseAll(id);
    world.Place();

    EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1)) << reboot;
    EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty()) << reboot;
  }
}

TEST(GangStart, AGangThatMovesToAnotherHostIsChecked) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  world.Connect("node-c");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  world.Lose("node-b");
  world.Exit(id, 0, ExitCode(67));
  world.Release(id, "node-a");

  world.Place();

  EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
}

TEST(GangStart, AGangThatStartedWithoutChecksAndNeverRanIsCheckedTheNextTime) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);
  world.Commit(id, 10);
  world.FailOnce(id, KilledBy(9));
  world.Place();
  ASSERT_THAT(world.Sent<StartRanks>(), SizeIs(2));
  world.FailOnce(id, KilledBy(9));
  world.Advance(absl::Seconds(1));  // the back-off of a second failure

  world.Place();

  EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
  EXPECT_THAT(world.Sent<StartRanks>(), IsEmpty());
}

TEST(GangStart, ACoordinatorThatStartsAnewKnowsNoProof) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Run(id);
  world.Restart();
  world.Reconnect("node-a", world.ShimsOf("node-a"));
  world.FailOnce(id, KilledBy(9));

  world.Place();

  EXPECT_THAT(world.Sent<ProbeHost>(), SizeIs(1));
}

}  // namespace
}  // namespace llmctl::core
