// The same job on 1, 2 and 3 data-parallel ranks: the same losses, and the same bits every time.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/rng.h"
#include "tests/numerics/trainer/tiny_run.h"
#include "worker/data/pack/packed_writer.h"
#include "worker/trainer/failure.h"

namespace llmctl::trainer {
namespace {

// Sums in another order: a few roundings of 2^-24 a step, amplified by eight steps of Adam.
constexpr double kTolerance = 2e-5;

std::vector<double> Losses(int ranks, const RunOptions& options = {}) {
  contract::TrainerConfig config = TinyConfig();
  config.data_parallel = ranks;
  std::vector<RankResult> results = RunRanks(config, options);
  for (const RankResult& result : results) {
    EXPECT_TRUE(result.exit.ok()) << result.exit.status();
    EXPECT_EQ(result.losses, results[0].losses) << "all ranks report the loss of the whole batch";
  }
  return results[0].losses;
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(DataParallel, LossesDoNotDependOnTheNumberOfRanks) {
  std::vector<double> alone = Losses(1);

  ASSERT_EQ(alone.size(), 8u);
  EXPECT_LT(alone.back(), alone.front() - 0.5) << "nothing was learnt: the comparison would mean little";
  EXPECT_LT(LargestDifference(alone, Losses(2)), kTolerance);
  EXPECT_LT(LargestDifference(alone, Losses(3)), kTolerance);
}

TEST(DataParallel, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(Losses(1), Losses(1));
  EXPECT_EQ(Losses(3), Losses(3));
}

TEST(DataParallel, WithoutTheSumOfGradientsTheComparisonFails) {
  // Guards the first test: ranks that train on their own parts must be told from ranks that train together.
  std::vector<double> alone = Losses(1);
  std::vector<double> apart = Losses(2, {.switched_off = "grad.bucket"});

  EXPECT_GT(LargestDifference(alone, apart), 100 * kTolerance);
}

TEST(DataParallel, ABatchThatDoesNotDivideIsSharedOutAllTheSame) {
  contract::TrainerConfig config = TinyConfig();
  config.training.global_batch_size = 7;
  std::vector<double> alone = RunRanks(config)[0].losses;

  config.data_parallel = 2;
  config.checkpoint.directory = FreshDirectory("checkpoints");

  EXPECT_LT(LargestDifference(alone, RunRanks(config)[0].losses), kTolerance);
}

TEST(DataParallel, ValidationIsSplitAndAddedUp) {
  contract::TrainerConfig config = TinyConfig();
  config.training.validation_every_steps = 4;
  config.training.validation_samples = 11;
  std::vector<RankResult> alone = RunRanks(config);
  config.data_parallel = 3;
  config.checkpoint.directory = FreshDirectory("checkpoints");

  std::vector<RankResult> three = RunRanks(config);

  ASSERT_TRUE(three[0].exit.ok()) << three[0].exit.status();
  ASSERT_TRUE(three[0].reports.back().validation_loss.has_value());
  EXPECT_EQ(three[0].reports.back().validation_step, 8);
  EXPECT_NEAR(*three[0].reports.back().validation_loss, *alone[0].reports.back().validation_loss, kTolerance);
  EXPECT_EQ(three[0].reports.back().validation_loss, three[2].reports.back().validation_loss);
}

// Two groups whose rows are filled to different parts, so that ranks have different numbers of targets that count.
std::string PackedDataset() {
  std::string path = FreshDirectory("packed");
  data::PackSettings settings{.sequence_length = 32, .window_tokens = 1000};
  data::DatasetManifest manifest = {.tokenizer = "byte", .vocabulary_size = 260, .end_of_document = 256};
  manifest.packing = data::PackingInfo{settings.row_tokens(), 258};
  manifest.source_json = "{}";
  for (const char* split : {"train", "validation"}) {
    auto writer = *data::CreatePackedWriter(path, split, 260, settings);
    SeededRng rng(9);
    for (int length : {13, 27}) {
      EXPECT_TRUE(writer->BeginGroup(absl::StrCat("length-", length)).ok());
      for (int document = 0; document < 40; ++document) {
        std::vector<int32_t> tokens;
        for (int i = 0; i + 1 < length; ++i) tokens.push_back(static_cast<int32_t>(97 + rng.Below(4) + i % 8));
        tokens.push_back(256);
        EXPECT_TRUE(writer->AddDocument(tokens).ok());
      }
    }
    manifest.splits.push_back(*writer->Finish());
  }
  manifest.splits[0].groups[0].weight = 0.25;
  manifest.splits[0].groups[1].weight = 0.75;
  EXPECT_TRUE(data::WriteManifest(path, manifest).ok());
  return path;
}

TEST(DataParallel, PaddedRowsWeighByTheTargetsThatCount) {
  contract::TrainerConfig config = TinyConfig();
  config.data.dataset = PackedDataset();
  config.training.validation_every_steps = 8;
  config.training.validation_samples = 10;
  RankResult alone = RunRanks(config)[0];
  ASSERT_TRUE(alone.exit.ok()) << alone.exit.status();
  config.data_parallel = 3;
  config.checkpoint.directory = FreshDirectory("checkpoints");

  std::vector<RankResult> three = RunRanks(config);

  ASSERT_TRUE(three[0].exit.ok()) << three[0].exit.status();
  EXPECT_LT(alone.losses.back(), alone.losses.front() - 0.5);
  EXPECT_LT(LargestDifference(alone.losses, three[0].losses), kTolerance);
  EXPECT_NEAR(*three[0].reports.back().validation_loss, *alone.reports.back().validation_loss, kTolerance);
  // Rows of 2 x 13 tokens have 25 targets that count, rows of 27 have 26.
  EXPECT_GE(alone.reports.front().tokens, 6 * 25);
  EXPECT_LE(alone.reports.front().tokens, 6 * 26);
}

TEST(DataParallel, ADatasetPackedForAnotherLengthIsRefused) {
  contract::TrainerConfig config = TinyConfig();
  config.data.dataset = PackedDataset();
  config.data.sequence_length = 16;

  absl::Status status = RunRanks(config)[0].exit.status();

  EXPECT_EQ(ExitCodeOf(status), contract::kExitConfig);
  EXPECT_NE(status.message().find("packed for sequences of 32"), std::string::npos) << status;
}

}  // namespace
}  // namespace llmctl::trainer
