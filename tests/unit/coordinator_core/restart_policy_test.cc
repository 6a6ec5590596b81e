#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/failure_class.h"
#include "tests/unit/coordinator_core/core_world.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::core {
namespace {

using testing::HasSubstr;

JobRequirements Budgets(int max_restarts, int without_progress) {
  JobRequirements needs = CoreWorld::Needs(1);
  needs.max_restarts = max_restarts;
  needs.max_attempts_without_progress = without_progress;
  return needs;
}

TEST(FailureClass, RanksThatWeStoppedWereTerminatedAndDidNotFail) {
  const classify::FailureRules& rules = *classify::FailureRules::Defaults();

  EXPECT_TRUE(ExitedWell(ExitCode(contract::kExitOk)));
  EXPECT_TRUE(EndedOnRequest(ExitCode(contract::kExitYielded)));
  EXPECT_EQ(DiagnoseExit(rules, ExitCode(contract::kExitOk)), Diagnosis{});
  EXPECT_EQ(DiagnoseExit(rules, ExitCode(contract::kExitYielded)), Diagnosis{});
  EXPECT_EQ(DiagnoseExit(rules, StoppedByAgent()), Diagnosis{});
  EXPECT_EQ(DiagnoseExit(rules, KilledBy(9)).rule, "killed");
}

TEST(FirstCause, IsTheRankThatFailedOnItsOwnEvenIfItIsSeenLast) {
  CoreWorld world;
  world.Connect("node-a", 3);
  JobId id = world.Submit(CoreWorld::Needs(3));
  world.Run(id);

  world.Exit(id, 1, ExitCode(67, "rank 2 closed the connection"));
  world.Exit(id, 0, StoppedByAgent());
  world.Exit(id, 2, ExitCode(65, "loss is NaN at step 7"));
  world.ReleaseAll(id);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kUser);
  EXPECT_THAT(world.reason(id), HasSubstr("rank 2 on node-a ended with exit code 65: loss is NaN at step 7"));
  EXPECT_THAT(world.HistoryText(id, "rank-exited"), HasSubstr("first cause is another (user"))
      << "the history must not leave it at the rank that was only seen first";
}

TEST(FirstCause, LostHostExplainsTheCollectivesThatFailedBecauseOfIt) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Exit(id, 0, ExitCode(67, "peer closed"));
  world.Release(id, "node-a");
  EXPECT_EQ(world.job(id).phase, JobPhase::kStopping) << "node-b may only be slow";
  world.Lose("node-b");

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  EXPECT_THAT(world.reason(id), HasSubstr("host node-b is lost: no heartbeat for 10 s"));
}

TEST(RestartPolicy, ConfigErrorIsFinal) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(5, 5));
  world.Run(id);

  world.FailOnce(id, ExitCode(64, "no such dataset"));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.outlook, Outlook::kNever);
}

TEST(RestartPolicy, UserFailuresSpendTheUsersBudget) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(1, 5));

  world.Run(id);
  world.FailOnce(id, ExitCode(65));
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);
  world.FailOnce(id, ExitCode(65));

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_THAT(world.reason(id), HasSubstr("maxRestarts is 1"));
}

TEST(RestartPolicy, DeviceOutOfMemoryIsTriedOnlyWithSmallerMicroBatches) {
  CoreWorld world;
  world.Connect("node-a");
  JobRequirements needs = Budgets(0, 1);
  needs.global_batch_size = 8;
  needs.micro_batch_size = 5;
  JobId id = world.Submit(needs);
  std::vector<int> tried;

  for (int i = 0; i < 3; ++i) {
    world.Place();
    world.AnswerProbes(id);
    tried.push_back(world.Sent<StartRanks>().at(0).micro_batch_size);
    world.FailOnce(id, ExitCode(70, "CUDA out of memory. Tried to allocate 2.00 GiB"));
  }

  EXPECT_THAT(tried, testing::ElementsAre(5, 2, 1));
  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_THAT(world.reason(id), HasSubstr("a micro-batch is one sequence already; use a smaller model"));
}

TEST(RestartPolicy, HostOutOfMemoryIsTriedOnceMore) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(5, 5));
  RankExit killed = KilledBy(9);
  killed.fatal_class = "oom";

  world.Run(id);
  world.FailOnce(id, killed);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  world.Run(id);
  world.FailOnce(id, killed);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.rule, "memory-ran-out");
  EXPECT_EQ(world.job(id).user_restarts, 0);
}

TEST(RestartPolicy, WhatWasPlannedIsTriedAtOnceButNotForEver) {
  CoreWorld world;
  world.state.rules = classify::FailureRules::Read(
      R"({"rules": [{"name": "preempted", "when": {"exit_codes": [99]}, "class": "scheduler", "outlook": "may-help"}]})",
      "rules").value();
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 3));

  for (int i = 0; i < 3; ++i) {
    world.Run(id);
    world.FailOnce(id, ExitCode(99));
    EXPECT_EQ(world.job(id).phase, i < 2 ? JobPhase::kQueued : JobPhase::kFailed);
  }
}

TEST(RestartPolicy, InfrastructureIsTriedAtOnceThenWithGrowingBackoffUpToTheCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 100));
  std::vector<absl::Duration> backoffs;

  for (int i = 0; i < 9; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    backoffs.push_back(world.job(id).backoff);
    world.Advance(world.job(id).backoff);
    ASSERT_EQ(world.job(id).phase, JobPhase::kQueued);
  }

  EXPECT_THAT(backoffs, testing::ElementsAre(absl::ZeroDuration(), absl::Seconds(1), absl::Seconds(2), absl::Seconds(4),
                                             absl::Seconds(8), absl::Seconds(16), absl::Seconds(32), absl::Seconds(60),
                                             absl::Seconds(60)));
}

TEST(RestartPolicy, AnAdvancedCheckpointResetsBackoffAndCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 3));

  for (int i = 1; i <= 6; ++i) {
    world.Run(id);
    if (i % 2 == 0) world.Commit(id, i);
    world.FailOnce(id, KilledBy(9));
    ASSERT_FALSE(IsTerminal(world.job(id).phase)) << i << ": " << world.reason(id);
    world.Advance(world.job(id).backoff);
  }

  EXPECT_EQ(world.job(id).last_attempt, 6);
}

TEST(RestartPolicy, FailuresWithoutProgressEndTheJobAtTheCap) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 3));

  for (int i = 0; i < 3; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    world.Advance(world.job(id).backoff);
  }

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(world.job(id).failure.failure_class, FailureClass::kInfrastructure);
  EXPECT_THAT(world.reason(id), HasSubstr("maxAttemptsWithoutProgress is 3"));
  EXPECT_THAT(world.reason(id), HasSubstr("killed by signal 9"));
}

TEST(RestartPolicy, MemoryHasOneBudgetWhateverRuleFindsThatItRanOut) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(5, 5));
  RankExit killed = KilledBy(9);
  killed.kernel_log = "Memory cgroup out of memory: Killed process 100 (llm-trainer) total-vm:9kB";

  world.Run(id);
  world.FailOnce(id, killed);
  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
  killed.kernel_log = "";
  killed.fatal_class = "oom";
  world.Run(id);
  world.FailOnce(id, killed);

  EXPECT_EQ(world.job(id).phase, JobPhase::kFailed);
  EXPECT_THAT(world.reason(id), HasSubstr("use a smaller training.microBatchSize"));
}

TEST(RestartPolicy, HistoryTellsClassCauseAndWhatIsLeft) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(2, 3));

  world.Run(id);
  world.FailOnce(id, ExitCode(65, "loss is NaN"));
  EXPECT_THAT(world.HistoryText(id, "queued"),
              HasSubstr("(user, rule exit-user): rank 0 on node-a ended with exit code 65: loss is NaN; 1 of 2 "
                        "restarts are left"));
  for (int i = 0; i < 2; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
  }

  EXPECT_THAT(world.HistoryText(id, "queued"), HasSubstr("failure 2 without a new checkpoint, 3 end the job"));
  EXPECT_THAT(world.HistoryText(id, "queued"), HasSubstr("Trying again in 1s."));
  EXPECT_EQ(world.job(id).retry_time, world.now.wall + absl::Seconds(1));
  EXPECT_EQ(world.job(id).first_cause.substr(0, 30), "rank 0 on node-a was killed by");
}

TEST(RestartPolicy, NodeThatWouldFailAgainIsAvoidedWhileAnotherFits) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(Budgets(0, 10));
  world.Run(id);
  ASSERT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-a"));

  world.FailOnce(id, KilledBy(7));
  world.Run(id);
  EXPECT_EQ(world.job(id).attempt->ranks[0].node, NodeId("node-b"));

  world.FailOnce(id, KilledBy(7));
  world.Advance(world.job(id).backoff);
  world.Run(id);
  EXPECT_THAT(world.job(id).avoided_nodes, testing::SizeIs(2)) << "and yet it runs: none is left that is better";
  world.Commit(id, 5);
  EXPECT_THAT(world.job(id).avoided_nodes, testing::IsEmpty());
}

TEST(RestartPolicy, JobThatBreaksOnOneNodeAfterTheOtherAccusesItself) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(Budgets(0, 10));
  for (int i = 0; i < 2; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(7));
    world.Advance(world.job(id).backoff);
  }

  EXPECT_EQ(world.state.nodes.at(NodeId("node-a")).standing.strike_score, 1);
  EXPECT_LT(world.state.nodes.at(NodeId("node-b")).standing.strike_score, 0.51);
  EXPECT_EQ(world.state.nodes.at(NodeId("node-b")).standing.strikes.at(0).job, id);
}

TEST(RestartPolicy, FailureOfAPeerSpeaksAgainstNoNode) {
  CoreWorld world;
  world.Connect("node-a");
  world.Connect("node-b");
  JobId id = world.Submit(CoreWorld::Needs(2));
  world.Run(id);

  world.Exit(id, 1, ExitCode(67, "rank 0 closed the connection"));
  world.Exit(id, 0, KilledBy(7));
  world.ReleaseAll(id);

  EXPECT_EQ(world.state.nodes.at(NodeId("node-a")).standing.strike_score, 1);
  EXPECT_EQ(world.state.nodes.at(NodeId("node-b")).standing.strike_score, 0);
}

TEST(RestartPolicy, BackoffBeginsAnewAfterARestartOfTheCoordinator) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit(Budgets(0, 10));
  for (int i = 0; i < 3; ++i) {
    world.Run(id);
    world.FailOnce(id, KilledBy(9));
    if (i < 2) world.Advance(world.job(id).backoff);
  }
  ASSERT_EQ(world.job(id).phase, JobPhase::kBackoff);

  world.Restart();
  EXPECT_EQ(world.job(id).phase, JobPhase::kBackoff);
  world.Advance(absl::Seconds(2));

  EXPECT_EQ(world.job(id).phase, JobPhase::kQueued);
}

}  // namespace
}  // namespace llmctl::core
