#include "worker/data/inspect/dataset_view.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/data/inspect/text_dataset.h"
#include "worker/data/shards/dataset_tokenizer.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LengthCounts, KnowWhatLengthsThereAre) {
  LengthCounts lengths;
  for (int64_t length : {1, 1, 2, 3, 4, 7, 8, 100}) lengths.Add(length);

  EXPECT_EQ(lengths.count(), 8);
  EXPECT_EQ(lengths.total(), 126);
  EXPECT_EQ(lengths.least(), 1);
  EXPECT_EQ(lengths.largest(), 100);
  std::vector<int64_t> counts, tokens;
  for (const LengthCounts::Bar& bar : lengths.Histogram()) {
    counts.push_back(bar.count);
    tokens.push_back(bar.tokens);
  }
  EXPECT_THAT(counts, ElementsAre(2, 2, 2, 1, 0, 0, 1));
  EXPECT_THAT(tokens, ElementsAre(2, 5, 11, 8, 0, 0, 100));
}

TEST(LengthCounts, QuantilesAreExactBelow32AndNearAbove) {
  LengthCounts few, many;
  for (int64_t length = 1; length < 32; ++length) few.Add(length);
  for (int64_t length = 1; length <= 100000; ++length) many.Add(length);

  for (int64_t length = 1; length < 32; ++length) {
    EXPECT_EQ(few.Quantile(static_cast<double>(length) / 31), length);
  }
  for (double quantile : {0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_GE(many.Quantile(quantile), quantile * 100000);
    EXPECT_LE(many.Quantile(quantile), quantile * 100000 * (1 + 1.0 / 16));
  }
}

TEST(DatasetView, ShowsDocumentsByNumber) {
  TextDataset dataset({"one", "two \xc3\xa9", "three"});
  auto view = *DatasetView::Open(dataset.path());

  EXPECT_EQ(*view->Text("train", 1), "two \xc3\xa9");
  EXPECT_THAT(*view->Tokens("train", 0), ElementsAre('o', 'n', 'e', 256));
  EXPECT_THAT(std::string(view->Text("train", 3).status().message()), HasSubstr("documents 0 to 2, not 3"));
  EXPECT_FALSE(view->Text("validation", 0).ok());
  EXPECT_EQ(view->Lengths("train")->total(), 4 + 7 + 6);
}

TEST(DatasetView, SamplesAreDifferentDocumentsAndTheSameForASeed) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("document " + std::to_string(i));
  TextDataset dataset(texts);
  auto view = *DatasetView::Open(dataset.path());

  std::vector<int64_t> sample = *view->Sample("train", 20, 7);

  EXPECT_EQ(std::set<int64_t>(sample.begin(), sample.end()).size(), 20u);
  EXPECT_EQ(*view->Sample("train", 20, 7), sample);
  EXPECT_NE(*view->Sample("train", 20, 8), sample);
  EXPECT_EQ(view->Sample("train", 1000, 7)->size(), 100u);
}

TEST(DatasetView, ADocumentOfADamagedIndexIsAnError) {
  TextDataset dataset({"one", "two"});
  std::string idx = *ReadFile(dataset.path() + "/train.idx");
  idx[34] = 100;  // a length of its first document that is more than there is
  ASSERT_TRUE(ReplaceFile(dataset.path() + "/train.idx", idx).ok());
  auto view = *DatasetView::Open(dataset.path());

  EXPECT_TRUE(absl::IsDataLoss(view->Text("train", 0).status()));
  EXPECT_TRUE(absl::IsDataLoss(view->Lengths("train").status()));
  EXPECT_EQ(*view->Text("train", 1), "two");
}

TEST(Excerpt, IsOneLineOfWholeCharacters) {
  EXPECT_EQ(Excerpt("short", 10), "short");
  EXPECT_EQ(Excerpt("a\nb\tc\x01", 10), "a\\nb\\tc\\x01");
  EXPECT_EQ(Excerpt("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xc3\xa9...");
  EXPECT_EQ(Excerpt("", 2), "");
}

// The file of the tokenizer lies in the dataset and gives the ids that the dataset was made of.
TEST(OpenDatasetTokenizer, RefusesAnotherThanTheDatasetWasMadeWith) {
  TextDataset dataset({"one"});
  DatasetManifest manifest = *ReadManifest(dataset.path());
  EXPECT_TRUE(OpenDatasetTokenizer(dataset.path(), manifest).ok()) << "a manifest without a digest is an old one";
  manifest.tokenizer_digest = "byte";
  EXPECT_TRUE(OpenDatasetTokenizer(dataset.path(), manifest).ok());
  manifest.tokenizer_digest = "another";
  EXPECT_THAT(std::string(OpenDatasetTokenizer(dataset.path(), manifest).status().message()),
              HasSubstr("put back the file"));
}

TEST(OpenDatasetTokenizer, FindsTheFileInsideTheDataset) {
  TextDataset dataset({"one"});
  DatasetManifest manifest = *ReadManifest(dataset.path());
  std::string json = *ReadFile("tests/unit/data/bpe/gpt2.json");
  ASSERT_TRUE(ReplaceFile(dataset.path() + "/tokenizer.json", json).ok());
  auto tokenizer = *MakeTokenizer("tests/unit/data/bpe/gpt2.json");
  manifest.tokenizer = kDatasetTokenizerName;
  manifest.tokenizer_digest = tokenizer->digest();
  manifest.vocabulary_size = tokenizer->vocabulary_size();

  absl::StatusOr<std::unique_ptr<Tokenizer>> opened = OpenDatasetTokenizer(dataset.path(), manifest);

  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->digest(), tokenizer->digest());
}

}  // namespace
}  // namespace llmctl::data
