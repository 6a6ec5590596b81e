// llm-trainer as the agent sees it: processes, exit codes, Gloo between them.
#include <signal.h>

#include <vector>

#include <gtest/gtest.h>

#include "tests/numerics/trainer/rank_processes.h"
#include "tests/numerics/trainer/tiny_run.h"
#include "worker/contract/collective_ring.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::trainer {
namespace {

void Ignore(RankProcesses::Rank&, int, int64_t) {}

TEST(TrainerProcesses, TwoGiveTheSameBitsAsTwoThreads) {
  contract::TrainerConfig config = TinyConfig();
  config.data_parallel = 2;
  std::vector<double> expected = RunRanks(config)[0].losses;
  config.checkpoint.directory = FreshDirectory("checkpoints");

  RankProcesses processes(config, Ignore);

  for (auto& rank : processes.Await()) {
    EXPECT_EQ(rank->exit, contract::kExitOk);
    EXPECT_EQ(rank->losses, expected);
  }
  auto ring = contract::ReadRing(RankProcesses::RankDirectory(config, 1) + "/collectives.ring");
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_STREQ(ring->back().site, "run.end");
}

TEST(TrainerProcesses, AKilledRankEndsTheOther) {
  contract::TrainerConfig config = TinyConfig();
  config.training.steps = 1000000;  // for ever
  config.data_parallel = 2;

  RankProcesses processes(config, [](RankProcesses::Rank& rank, int number, int64_t step) {
    if (number == 1 && step == 2) kill(rank.pid, SIGKILL);
  });

  auto& ranks = processes.Await();
  EXPECT_EQ(ranks[1]->exit, -SIGKILL);
  EXPECT_EQ(ranks[0]->exit, contract::kExitInfrastructure);
  EXPECT_EQ(ranks[0]->fatal_class, "infrastructure");
}

TEST(TrainerProcesses, TerminatingOneYieldsAll) {
  contract::TrainerConfig config = TinyConfig();
  config.training.steps = 1000000;
  config.data_parallel = 2;

  RankProcesses processes(config, [](RankProcesses::Rank& rank, int number, int64_t step) {
    if (number == 1 && step == 2) kill(rank.pid, SIGTERM);
  });

  auto& ranks = processes.Await();
  EXPECT_EQ(ranks[0]->exit, contract::kExitYielded);
  EXPECT_EQ(ranks[1]->exit, contract::kExitYielded);
  EXPECT_EQ(ranks[0]->losses.size(), ranks[1]->losses.size());
}

TEST(TrainerProcesses, StopFreesARankThatWaitsForASilentPeer) {
  // Rank 1 is stopped by SIGSTOP: alive, so that no socket closes, yet silent. Rank 0 waits in a collective until
  // it is told to stop.
  contract::TrainerConfig config = TinyConfig();
  config.training.steps = 1000000;
  config.data_parallel = 2;

  RankProcesses processes(config, Ignore);
  processes.AwaitStep(1, 2);
  kill(processes.pid(1), SIGSTOP);
  // Rank 0 may never report that step: what rank 1 owes it need not have left that process.
  processes.Say(0, contract::Stop{.reason = "cancelled"});

  EXPECT_EQ(processes.Await(0).exit, contract::kExitInfrastructure);
  kill(processes.pid(1), SIGKILL);
}

TEST(TrainerProcesses, AnOrphanEnds) {
  contract::TrainerConfig config = TinyConfig();
  config.training.steps = 1000000;

  RankProcesses processes(config, [](RankProcesses::Rank& rank, int, int64_t step) {
    if (step == 2) rank.shim.Close();
  });

  EXPECT_EQ(processes.Await()[0]->exit, contract::kExitOrphaned);
}

TEST(TrainerProcess, ExitCodesTellUsageFromSuccess) {
  EXPECT_EQ(AwaitExit(Spawn({"version"}, -1)), contract::kExitOk);
  EXPECT_EQ(AwaitExit(Spawn({"train"}, -1)), contract::kExitConfig);
  EXPECT_EQ(AwaitExit(Spawn({"train", "--config", "/nonexistent.json"}, -1)), contract::kExitConfig);
}

}  // namespace
}  // namespace llmctl::trainer
