#include "worker/data/shards/loader.h"

#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/data/written_dataset.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A split whose token i is i mod 251, so that a token tells its place.
class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() {
    std::vector<int32_t> tokens(1000);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 251;
    WriteDataset(folder_.path(), 260, {tokens});
    reader_ = *ShardReader::Open(folder_.path(), "train");
    options_.sampler = {"digest", 1000, 10, 7, true};
    options_.global_batch_size = 8;
    options_.batch = {.micro_batch_size = 3, .vocabulary_size = 260};
  }

  std::unique_ptr<Loader> MakeLoader() {
    auto loader = Loader::Create(*reader_, options_);
    EXPECT_TRUE(loader.ok()) << loader.status();
    return *std::move(loader);
  }

  TemporaryDirectory folder_;
  std::unique_ptr<ShardReader> reader_;
  LoaderOptions options_;
};

TEST(RankSamples, PartsAreContiguousAndDifferByAtMostOne) {
  for (int world : {1, 2, 3, 5, 8}) {
    int64_t at = 100;
    for (int rank = 0; rank < world; ++rank) {
      SampleRange range = RankSamples(100, 8, rank, world);
      EXPECT_EQ(range.begin, at);
      EXPECT_TRUE(range.size() == 8 / world || range.size() == 8 / world + 1);
      at = range.end;
    }
    EXPECT_EQ(at, 108);
  }
}

TEST_F(LoaderTest, MicroBatchesHoldTheSamplesOfTheStepInOrder) {
  auto loader = MakeLoader();
  Sampler sampler = *Sampler::Create(options_.sampler);
  for (int64_t step = 0; step < 30; ++step) {
    absl::StatusOr<StepBatch> batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(batch->first_sample, step * 8);
    ASSERT_EQ(batch->micro_batches.size(), 3u);
    int64_t sample = step * 8;
    for (const MicroBatch& micro : batch->micro_batches) {
      EXPECT_EQ(micro.first_sample, sample);
      ASSERT_EQ(micro.inputs.size(), static_cast<size_t>(micro.samples) * 10);
      for (int i = 0; i < micro.samples; ++i, ++sample) {
        int64_t start = sampler.Start(sample);
        for (int t = 0; t < 10; ++t) {
          ASSERT_EQ(micro.inputs[i * 10 + t], (start + t) % 251);
          ASSERT_EQ(micro.targets[i * 10 + t], (start + t + 1) % 251);
        }
      }
    }
    EXPECT_EQ(batch->micro_batches.back().samples, 2);
    EXPECT_GE(batch->wait_seconds, 0);
  }
}

TEST_F(LoaderTest, RanksTogetherReadWhatOneRankReads) {
  auto append_first_step = [this](std::vector<int32_t>& out) {
    StepBatch batch = *MakeLoader()->Next();
    for (const MicroBatch& micro : batch.micro_batches) {
      out.insert(out.end(), micro.inputs.begin(), micro.inputs.end());
    }
  };
  std::vector<int32_t> alone, together;
  append_first_step(alone);
  options_.world_size = 3;
  for (options_.rank = 0; options_.rank < 3; ++options_.rank) append_first_step(together);

  EXPECT_EQ(alone.size(), 80u);
  EXPECT_EQ(alone, together);
}

TEST_F(LoaderTest, StartingInTheMiddleGivesTheSameBatches) {
  auto from_start = MakeLoader();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(from_start->Next().ok());
  options_.first_sample = 5 * 8;
  auto resumed = MakeLoader();
  for (int i = 0; i < 20; ++i) {
    StepBatch a = *from_start->Next(), b = *resumed->Next();
    EXPECT_EQ(a.first_sample, b.first_sample);
    ASSERT_EQ(a.micro_batches.size(), b.micro_batches.size());
    for (size_t m = 0; m < a.micro_batches.size(); ++m) EXPECT_EQ(a.micro_batches[m].inputs, b.micro_batches[m].inputs);
  }
}

TEST_F(LoaderTest, StopsWhileItsQueueIsFull) {
  options_.prefetched_steps_max = 1;
  auto loader = MakeLoader();
  ASSERT_TRUE(loader->Next().ok());
  loader.reset();
}

TEST_F(LoaderTest, ATokenOutsideTheVocabularyIsAnError) {
  options_.batch.vocabulary_size = 200;
  auto loader = MakeLoader();
  absl::StatusOr<StepBatch> batch = loader->Next();
  for (int i = 0; i < 20 && batch.ok(); ++i) batch = loader->Next();

  EXPECT_TRUE(absl::IsDataLoss(batch.status()));
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("the vocabulary has 200"));
  EXPECT_EQ(loader->Next().status(), batch.status());
}

TEST(ReadMicroBatches, SaysWhereDocumentsBegin) {
  TemporaryDirectory folder;
  WriteDataset(folder.path(), 260, {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12, 13}});
  auto reader = *ShardReader::Open(folder.path(), "train");
  Sampler sampler = *Sampler::Create({"digest", 13, 4, 0, /*shuffle=*/false});

  auto batches = ReadMicroBatches(*reader, sampler, {0, 3}, {.micro_batch_size = 3, .vocabulary_size = 260});

  ASSERT_TRUE(batches.ok()) << batches.status();
  // Windows 1 2 3 4 | 5 6 7 8 | 9 10 11 12: the document that begins with 5 begins the second.
  EXPECT_THAT(batches->at(0).document_starts, ElementsAre(0, 3, 4, 8, 10, 12));
  EXPECT_THAT(batches->at(0).targets, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
}

TEST(ReadMicroBatches, ADamagedIndexIsAnErrorWhereItIsUsed) {
  TemporaryDirectory folder;
  WriteDataset(folder.path(), 260, {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12, 13}});
  const std::string whole = *ReadFile(folder / "train.idx");
  for (int64_t offset : {int64_t{-2}, int64_t{1}, int64_t{1} << 62, int64_t{0}}) {
    std::string idx = whole;
    std::memcpy(idx.data() + 34 + 4 * 4 + 8, &offset, sizeof offset);  // of the second document
    ASSERT_TRUE(ReplaceFile(folder / "train.idx", idx).ok());
    auto reader = *ShardReader::Open(folder.path(), "train");
    Sampler sampler = *Sampler::Create({"digest", 13, 4, 0, /*shuffle=*/false});

    absl::Status status =
        ReadMicroBatches(*reader, sampler, {0, 1}, {.micro_batch_size = 1, .vocabulary_size = 260}).status();

    EXPECT_TRUE(absl::IsDataLoss(status)) << offset << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("llmctl data verify"));
  }
}

TEST_F(LoaderTest, RefusesASplitTooShortAndABatchTooSmall) {
  LoaderOptions options = options_;
  options.sampler.sequence_length = 1000;
  EXPECT_THAT(std::string(Loader::Create(*reader_, options).status().message()), HasSubstr("shorten sequence_length"));
  options = options_;
  options.world_size = 9;
  EXPECT_THAT(std::string(Loader::Create(*reader_, options).status().message()),
              HasSubstr("every rank needs a sample"));
}

}  // namespace
}  // namespace llmctl::data
