// Stopped anywhere and resumed on the same layout, a run gives the same bits as one that never stopped.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/numerics/trainer/tiny_run.h"
#include "worker/trainer/failure.h"

namespace llmctl::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Requests Yield() { return {.yield = "preempted"}; }

// Turns one byte in the middle of a file around.
void Damage(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr) << path;
  std::fseek(file, 0, SEEK_END);
  long middle = std::ftell(file) / 2;
  std::fseek(file, middle, SEEK_SET);
  int byte = std::fgetc(file);
  std::fseek(file, middle, SEEK_SET);
  std::fputc(byte ^ 0xff, file);
  std::fclose(file);
}

struct Layout {
  const char* name;
  const char* precision;
  int ranks;
};

class ResumeTest : public testing::TestWithParam<Layout> {};

TEST_P(ResumeTest, GivesTheSameBitsAsNeverHavingStopped) {
  contract::TrainerConfig config = TinyConfig();
  config.training.precision = GetParam().precision;
  config.data_parallel = GetParam().ranks;
  std::vector<double> straight = RunRanks(config)[0].losses;
  ASSERT_EQ(straight.size(), 8u);

  // The last rank is asked to yield; all do, after the same step.
  config.checkpoint.directory = FreshDirectory("checkpoints");
  std::vector<RankResult> first = RunRanks(config, {.scripts = {{GetParam().ranks - 1, {{3, Yield()}}}}});
  for (const RankResult& result : first) {
    ASSERT_TRUE(result.exit.ok()) << result.exit.status();
    EXPECT_EQ(*result.exit, contract::kExitYielded);
  }
  config.resume_from = ResumePoints(first[0]);
  ASSERT_EQ(config.resume_from.size(), 1u);
  std::vector<RankResult> second = RunRanks(config, {.generation = 2});

  ASSERT_TRUE(second[0].exit.ok()) << second[0].exit.status();
  std::vector<double> stopped = first[0].losses;
  stopped.insert(stopped.end(), second[0].losses.begin(), second[0].losses.end());
  EXPECT_EQ(stopped, straight);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ResumeTest,
                         testing::Values(Layout{"Fp32Alone", "fp32", 1}, Layout{"Bf16Alone", "bf16", 1},
                                         Layout{"Fp32TwoRanks", "fp32", 2}, Layout{"Bf16TwoRanks", "bf16", 2}),
                         [](const auto& info) { return info.param.name; });

class DamagedCheckpoint : public testing::Test {
 protected:
  // Saves after steps 2, 4 and 6 of 8 (and at the end).
  void SetUp() override {
    config_.checkpoint.every_steps = 2;
    straight_ = RunRanks(config_)[0];
    ASSERT_TRUE(straight_.exit.ok()) << straight_.exit.status();
    std::vector<contract::ResumePoint> points = ResumePoints(straight_);
    ASSERT_EQ(points.size(), 4u);
    config_.resume_from = {points[1], points[2]};  // steps 6 and 4
  }

  contract::TrainerConfig config_ = TinyConfig();
  RankResult straight_;
};

TEST_F(DamagedCheckpoint, FallsBackToTheOneBeforeAndSaysSo) {
  Damage(config_.resume_from[0].path + "/optimizer.safetensors");

  RankResult resumed = RunRanks(config_, {.generation = 2})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_THAT(resumed.log, HasSubstr("CHECKPOINT PASSED OVER: step 6"));
  EXPECT_THAT(resumed.log, HasSubstr("optimizer.safetensors"));
  EXPECT_EQ(resumed.losses, std::vector<double>(straight_.losses.begin() + 4, straight_.losses.end()));
}

// The answer that named it as removable was lost with the rank that should have removed it.
TEST_F(DamagedCheckpoint, WhatIsOlderThanAllResumePointsIsRemoved) {
  std::string forgotten = straight_.commits[0].path;
  ASSERT_TRUE(std::filesystem::exists(forgotten + "/manifest.json"));

  RankResult resumed = RunRanks(config_, {.generation = 2})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_FALSE(std::filesystem::exists(forgotten));
  for (const contract::ResumePoint& point : config_.resume_from) EXPECT_TRUE(std::filesystem::exists(point.path));
  EXPECT_TRUE(std::filesystem::exists(straight_.commits.back().path)) << "newer ones are not ours to judge";
}

// Its rank was killed in the midst of writing it, and nobody else will take it for anything.
TEST_F(DamagedCheckpoint, WhatAnEarlierGenerationDidNotFinishIsRemoved) {
  std::string torn = straight_.commits.back().path;
  ASSERT_TRUE(std::filesystem::remove(torn + "/manifest.json"));

  RankResult resumed = RunRanks(config_, {.generation = 2})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_FALSE(std::filesystem::exists(torn));
}

TEST_F(DamagedCheckpoint, WithNoneWholeTheRunRefusesToStart) {
  Damage(config_.resume_from[0].path + "/model.safetensors");
  ASSERT_EQ(std::remove((config_.resume_from[1].path + "/manifest.json").c_str()), 0);

  config_.data_parallel = 2;
  std::vector<RankResult> results = RunRanks(config_, {.generation = 2});

  for (const RankResult& result : results) ASSERT_FALSE(result.exit.ok());
  EXPECT_EQ(ExitCodeOf(results[0].exit.status()), contract::kExitConfig) << results[0].exit.status();
  // It only knows that another one failed: the cause is the other one's to tell.
  EXPECT_EQ(ExitCodeOf(results[1].exit.status()), contract::kExitInfrastructure) << results[1].exit.status();
  EXPECT_TRUE(results[0].losses.empty());
}

// A file that is there and whole, but not for who opens it now.
void MakeUnreadable(const std::string& path) {
  std::filesystem::rename(path, path + ".aside");
  std::filesystem::create_symlink(path, path);
}

TEST_F(DamagedCheckpoint, OneThatCannotBeReadNowIsNotPassedOver) {
  for (const char* file : {"/manifest.json", "/optimizer.safetensors"}) {
    std::string path = config_.resume_from[0].path + file;
    MakeUnreadable(path);

    RankResult resumed = RunRanks(config_, {.generation = 2})[0];

    ASSERT_FALSE(resumed.exit.ok()) << file;
    EXPECT_EQ(ExitCodeOf(resumed.exit.status()), contract::kExitInfrastructure) << resumed.exit.status();
    EXPECT_THAT(std::string(resumed.exit.status().message()), HasSubstr("step 6 cannot be read now"));
    EXPECT_THAT(resumed.log, Not(HasSubstr("PASSED OVER")));
    std::filesystem::rename(path + ".aside", path);
  }
}

TEST_F(DamagedCheckpoint, WithoutTheirDirectoryNoneIsLost) {
  std::filesystem::rename(config_.checkpoint.directory, config_.checkpoint.directory + ".unmounted");

  RankResult resumed = RunRanks(config_, {.generation = 2})[0];

  ASSERT_FALSE(resumed.exit.ok());
  EXPECT_EQ(ExitCodeOf(resumed.exit.status()), contract::kExitInfrastructure) << resumed.exit.status();
  EXPECT_THAT(std::string(resumed.exit.status().message()), HasSubstr(config_.checkpoint.directory));
}

// The coordinator's records are older than what lies on disk, and what they name may have been removed since.
class ForgottenCheckpoints : public DamagedCheckpoint {
 protected:
  void SetUp() override {
    DamagedCheckpoint::SetUp();
    config_.search_checkpoints = true;
    // The end of the run, so that there is something left to do.
    std::filesystem::remove_all(straight_.commits.back().path);
    newest_ = config_.resume_from[0].path;  // of step 6
    config_.resume_from = {};
  }
  std::vector<double> LossesAfter(int64_t step) const {
    return {straight_.losses.begin() + step, straight_.losses.end()};
  }

  std::string newest_;
};

TEST_F(ForgottenCheckpoints, NewestWholeOneIsGoneOnFromAndOfferedForCommit) {
  config_.data_parallel = 2;

  RankResult resumed = RunRanks(config_, {.generation = 1000})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_THAT(resumed.log, HasSubstr("resumed from step 6"));
  EXPECT_EQ(resumed.losses.size(), 2u);
  ASSERT_FALSE(resumed.commits.empty());
  EXPECT_EQ(resumed.commits[0].step, 6);
  EXPECT_EQ(resumed.commits[0].path, newest_);
}

TEST_F(ForgottenCheckpoints, DamagedOneIsPassedOver) {
  Damage(newest_ + "/model.safetensors");

  RankResult resumed = RunRanks(config_, {.generation = 1000})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_THAT(resumed.log, HasSubstr("CHECKPOINT PASSED OVER: step 6"));
  EXPECT_EQ(resumed.losses, LossesAfter(4));
}

TEST_F(ForgottenCheckpoints, WhatIsOnRecordIsTakenWhereNothingNewerIsThere) {
  config_.resume_from = {{.step = 6, .path = newest_, .manifest_digest = straight_.commits[2].manifest_digest}};

  RankResult resumed = RunRanks(config_, {.generation = 1000})[0];

  ASSERT_TRUE(resumed.exit.ok()) << resumed.exit.status();
  EXPECT_EQ(resumed.losses, LossesAfter(6));
}

TEST_F(ForgottenCheckpoints, RunWithoutAnyBeginsAtTheBeginning) {
  config_.checkpoint.directory = FreshDirectory("checkpoints");
  config_.data_parallel = 2;

  RankResult fresh = RunRanks(config_, {.generation = 1000})[0];

  ASSERT_TRUE(fresh.exit.ok()) << fresh.exit.status();
  EXPECT_EQ(fresh.losses.size(), 8u);
}

TEST_F(ForgottenCheckpoints, WithNoneWholeTheRunDoesNotBeginAnew) {
  for (const contract::CheckpointCommit& commit : straight_.commits) {
    if (std::filesystem::exists(commit.path)) Damage(commit.path + "/model.safetensors");
  }

  RankResult refused = RunRanks(config_, {.generation = 1000})[0];

  EXPECT_FALSE(refused.exit.ok());
}

TEST(Resume, ACheckpointOfAnotherSpecificationIsPassedOver) {
  contract::TrainerConfig config = TinyConfig();
  RankResult first = RunRanks(config)[0];
  config.resume_from = ResumePoints(first);
  config.spec_digest = "another";

  RankResult second = RunRanks(config, {.generation = 2})[0];

  EXPECT_FALSE(second.exit.ok());
  EXPECT_THAT(second.log, HasSubstr("belongs to another job specification"));
}

TEST(Resume, AFinishedRunHasNothingLeftToDo) {
  contract::TrainerConfig config = TinyConfig();
  config.resume_from = ResumePoints(RunRanks(config)[0]);

  RankResult second = RunRanks(config, {.generation = 2})[0];

  ASSERT_TRUE(second.exit.ok()) << second.exit.status();
  EXPECT_EQ(*second.exit, contract::kExitOk);
  EXPECT_TRUE(second.losses.empty());
  EXPECT_TRUE(second.commits.empty());
}

TEST(InitFrom, TakesTheWeightsAndNothingElse) {
  contract::TrainerConfig config = TinyConfig();
  RankResult teacher = RunRanks(config)[0];
  config.init_from = teacher.commits.back().path;
  config.checkpoint.directory = FreshDirectory("checkpoints");
  config.data_parallel = 2;

  std::vector<RankResult> student = RunRanks(config);

  ASSERT_TRUE(student[0].exit.ok()) << student[0].exit.status();
  EXPECT_EQ(student[0].losses.size(), 8u) << "progress does not come along";
  EXPECT_EQ(student[0].reports[0].learning_rate, teacher.reports[0].learning_rate);
  EXPECT_LT(student[0].losses[0], teacher.losses[0] - 0.5);
}

TEST(InitFrom, WhatIsNotThereIsTheUsersAndWhatCannotBeReadNowIsNot) {
  contract::TrainerConfig config = TinyConfig();
  config.init_from = RunRanks(config)[0].commits.back().path;
  config.checkpoint.directory = FreshDirectory("checkpoints");
  MakeUnreadable(config.init_from + "/model.safetensors");
  RankResult unreadable = RunRanks(config)[0];
  config.init_from += "-misspelt";
  RankResult missing = RunRanks(config)[0];

  ASSERT_FALSE(unreadable.exit.ok());
  EXPECT_EQ(ExitCodeOf(unreadable.exit.status()), contract::kExitInfrastructure) << unreadable.exit.status();
  ASSERT_FALSE(missing.exit.ok());
  EXPECT_EQ(ExitCodeOf(missing.exit.status()), contract::kExitConfig) << missing.exit.status();
}

}  // namespace
}  // namespace llmctl::trainer
