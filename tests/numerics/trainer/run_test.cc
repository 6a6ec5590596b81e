// What a run does besides its arithmetic: checkpoints, requests, steps that are not finite, curves.
#include "worker/trainer/run.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "tests/numerics/trainer/tiny_run.h"
#include "worker/engine/checkpoint/checkpoint.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/progress.h"

namespace llmctl::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Steps(const std::vector<contract::CheckpointCommit>& commits) {
  std::vector<int64_t> steps;
  for (const contract::CheckpointCommit& commit : commits) steps.push_back(commit.step);
  return steps;
}

TEST(Phases, SayWhatARunHasSpentItsTimeOn) {
  contract::TrainerConfig config = TinyConfig();
  config.data_parallel = 2;

  std::vector<RankResult> ranks = RunRanks(config);

  for (const RankResult& rank : ranks) {
    ASSERT_TRUE(rank.exit.ok()) << rank.exit.status();
    EXPECT_EQ(rank.phases.activity, contract::Activity::kEnding);
    EXPECT_EQ(rank.phases.phase, contract::Phase::kOther) << "every phase that began has ended";
    EXPECT_EQ(rank.phases.step, config.training.steps);
    EXPECT_EQ(rank.phases.steps_here, config.training.steps);
    for (contract::Phase phase : {contract::Phase::kData, contract::Phase::kForward, contract::Phase::kBackward,
                                  contract::Phase::kCollective, contract::Phase::kOptimizer}) {
      EXPECT_GT(rank.phases.spent_nanoseconds[static_cast<size_t>(phase)], 0) << contract::PhaseName(phase);
    }
  }
  auto writing = static_cast<size_t>(contract::Phase::kWriting);
  EXPECT_GT(ranks[0].phases.spent_nanoseconds[writing], 0);
  EXPECT_EQ(ranks[1].phases.spent_nanoseconds[writing], 0) << "rank 0 alone writes";
}

// The real model, but for one backward pass whose gradients are not finite.
class PoisonedModel : public engine::Model {
 public:
  PoisonedModel(std::unique_ptr<engine::Model> model, int poisoned_call)
      : model_(std::move(model)), calls_left_(poisoned_call) {}

  const std::vector<engine::Parameter>& parameters() const override { return model_->parameters(); }
  int64_t flat_size() const override { return model_->flat_size(); }
  float* master() override { return model_->master(); }
  float* gradients() override { return model_->gradients(); }
  engine::kernels::Bf16* weights() override { return model_->weights(); }
  void Initialize(uint64_t seed) override { model_->Initialize(seed); }
  void CastWeights() override { model_->CastWeights(); }
  void ZeroGradients() override { model_->ZeroGradients(); }
  engine::LossSum ForwardBackward(const engine::MicroBatch& batch, double scale, engine::GradSink* sink) override {
    engine::LossSum loss = model_->ForwardBackward(batch, scale, sink);
    if (--calls_left_ == 0) model_->gradients()[0] = std::numeric_limits<float>::quiet_NaN();
    return loss;
  }
  engine::LossSum Forward(const engine::MicroBatch& batch) override { return model_->Forward(batch); }
  void LastLogits(const int32_t* tokens, int64_t length, float* logits) override {
    model_->LastLogits(tokens, length, logits);
  }

 private:
  std::unique_ptr<engine::Model> model_;
  int calls_left_;
};

// Three micro-batches a step: call 9 ends step 3.
absl::StatusOr<OwnedModel> PoisonStepThree(const layout::ModelShape& shape, const engine::ModelOptions& options) {
  absl::StatusOr<OwnedModel> owned = CreateOwnedModel(shape, options);
  if (owned.ok()) owned->model = std::make_unique<PoisonedModel>(std::move(owned->model), 9);
  return owned;
}

TEST(NotFiniteStep, IsSkippedWithinTheBudgetAndWrittenDown) {
  contract::TrainerConfig config = TinyConfig();
  config.training.nan_budget = 1;

  RankResult result = RunRanks(config, {.create_model = PoisonStepThree})[0];

  ASSERT_TRUE(result.exit.ok()) << result.exit.status();
  EXPECT_THAT(result.log, HasSubstr("step 3 skipped"));
  EXPECT_TRUE(std::isnan(result.reports[2].gradient_norm));
  EXPECT_TRUE(std::isfinite(result.losses.back()));
  auto reader = checkpoint::CheckpointReader::Open(result.commits.back().path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const checkpoint::Manifest& manifest = (*reader)->manifest();
  EXPECT_EQ(manifest.step, 8);
  EXPECT_EQ(manifest.optimizer.step, 7);
  ASSERT_EQ(manifest.ledger.segments().size(), 1u);
  EXPECT_THAT(manifest.ledger.segments()[0].skips, ElementsAre(checkpoint::SampleRun{12, 17}));
}

TEST(NotFiniteStep, LeavesWeightsAndMomentsAsTheyWere) {
  contract::TrainerConfig config = TinyConfig();
  config.training.nan_budget = 1;
  config.checkpoint.every_steps = 1;
  std::vector<contract::CheckpointCommit> commits = RunRanks(config, {.create_model = PoisonStepThree})[0].commits;
  ASSERT_EQ(commits.size(), 8u);

  auto before = checkpoint::CheckpointReader::Open(commits[1].path);
  auto skipped = checkpoint::CheckpointReader::Open(commits[2].path);
  auto after = checkpoint::CheckpointReader::Open(commits[3].path);

  ASSERT_TRUE(before.ok() && skipped.ok() && after.ok());
  for (const auto& [name, tensor] : (*before)->manifest().tensors) {
    EXPECT_EQ((*skipped)->manifest().tensors.at(name).checksum, tensor.checksum) << name;
    EXPECT_NE((*after)->manifest().tensors.at(name).checksum, tensor.checksum) << name;
  }
}

TEST(NotFiniteStep, BeyondTheBudgetIsTheUsersFailure) {
  RankResult result = RunRanks(TinyConfig(), {.create_model = PoisonStepThree})[0];

  ASSERT_FALSE(result.exit.ok());
  EXPECT_EQ(ExitCodeOf(result.exit.status()), contract::kExitUser);
  EXPECT_THAT(std::string(result.exit.status().message()), HasSubstr("nanBudget 0"));
}

TEST(Checkpoints, AreSavedEveryNStepsOnRequestAndAtTheEnd) {
  contract::TrainerConfig config = TinyConfig();
  config.checkpoint.every_steps = 3;
  config.data_parallel = 2;

  std::vector<RankResult> results = RunRanks(config, {.scripts = {{1, {{4, {.save = true}}}}}});

  ASSERT_TRUE(results[0].exit.ok()) << results[0].exit.status();
  EXPECT_THAT(Steps(results[0].commits), ElementsAre(3, 4, 6, 8));
  EXPECT_TRUE(results[1].commits.empty()) << "only rank 0 writes";
  EXPECT_EQ(results[0].commits.back().next_sample, 8 * 6);
}

TEST(Checkpoints, AFailedSaveIsLoudAndTheRunGoesOn) {
  contract::TrainerConfig config = TinyConfig();
  config.checkpoint.every_steps = 2;
  std::string blocked =
      absl::StrCat(config.checkpoint.directory, "/", checkpoint::FormatCheckpointName({4, /*attempt=*/1, 1}));
  ASSERT_TRUE(WriteFileAtomically(blocked, "a file where a folder should be").ok());

  RankResult result = RunRanks(config)[0];

  ASSERT_TRUE(result.exit.ok()) << result.exit.status();
  EXPECT_THAT(result.log, HasSubstr("SAVE FAILED at step 4"));
  EXPECT_THAT(Steps(result.commits), ElementsAre(2, 6, 8));
}

TEST(Run, EndsAtOnceWhenHalted) {
  Requests halt = {.halt = Halt{contract::kExitOrphaned, "the link to the shim ended"}};

  RankResult result = RunRanks(TinyConfig(), {.scripts = {{0, {{2, halt}}}}})[0];

  ASSERT_FALSE(result.exit.ok());
  EXPECT_EQ(ExitCodeOf(result.exit.status()), contract::kExitOrphaned);
  EXPECT_EQ(result.losses.size(), 2u);
  EXPECT_TRUE(result.commits.empty());
}

TEST(Run, ALostPeerIsAFailureOfTheInfrastructure) {
  Requests halt = {.halt = Halt{contract::kExitInfrastructure, "stopped"}};
  contract::TrainerConfig config = TinyConfig();
  config.data_parallel = 2;

  std::vector<RankResult> results = RunRanks(config, {.scripts = {{1, {{2, halt}}}}});

  ASSERT_FALSE(results[0].exit.ok());
  EXPECT_EQ(ExitCodeOf(results[0].exit.status()), contract::kExitInfrastructure);
  EXPECT_EQ(results[0].losses.size(), 2u);
}

TEST(Run, RefusesAWorldOfAnotherSizeThanTheSpecification) {
  contract::TrainerConfig config = TinyConfig();
  config.data_parallel = 2;
  RankResult result = RunRank(config, std::move(engine::comm::CreateInProcessGroup(1)[0]), {});

  ASSERT_FALSE(result.exit.ok());
  EXPECT_EQ(ExitCodeOf(result.exit.status()), contract::kExitConfig);
}

TEST(Run, NamesAMissingDataset) {
  contract::TrainerConfig config = TinyConfig();
  config.data.dataset = "/nonexistent/dataset";

  RankResult result = RunRanks(config)[0];

  ASSERT_FALSE(result.exit.ok());
  EXPECT_EQ(ExitCodeOf(result.exit.status()), contract::kExitConfig);
  EXPECT_THAT(std::string(result.exit.status().message()), HasSubstr("/nonexistent/dataset"));
}

TEST(Curves, HoldEveryStepToTheLastBit) {
  contract::TrainerConfig config = TinyConfig();
  config.training.validation_every_steps = 4;
  config.data_parallel = 2;
  RankResult result = RunRanks(config, {.generation = 3})[0];

  auto text = ReadFile(config.checkpoint.directory + "/curves/a1-g3.jsonl");

  ASSERT_TRUE(text.ok()) << text.status();
  std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 10u) << "eight steps and two validations, from one rank only";
  EXPECT_TRUE(absl::StartsWith(lines[4], "{\"step\":4,\"validation_loss\":"));
  ASSERT_TRUE(absl::StartsWith(lines[0], "{\"step\":1,\"loss\":"));
  EXPECT_EQ(std::strtod(lines[0].c_str() + 17, nullptr), result.losses[0]);
}

TEST(StepLine, IsBriefAndAligned) {
  contract::Progress progress = {.step = 120, .steps = 600, .loss = 2.10341, .learning_rate = 9.1e-4,
                                 .gradient_norm = 0.8412, .tokens_per_second = 11234};

  EXPECT_EQ(StepLine(progress, 43.2), "step 120/600 loss 2.1034 lr 9.1e-04 gnorm 0.84 11.2k tok/s eta 0:43");
  EXPECT_THAT(StepLine(progress, 3723), HasSubstr("eta 1:02:03"));
}

}  // namespace
}  // namespace llmctl::trainer
