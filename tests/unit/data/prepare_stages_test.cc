// Each stage of preparation does its part when the specification names it.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/prepared_corpus.h"
#include "worker/data/command/audited_dataset.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kEnglish[] =
    "The committee met in the morning and decided that the harbour should be opened to all ships again before winter.";
constexpr char kGerman[] =
    "Der Ausschuss trat am Morgen zusammen und beschloss, dass der Hafen vor dem Winter wieder allen Schiffen offenstehe.";

// A model to which "good" is likely and "bad" is not.
std::string WriteModel(const Preparation& run) {
  std::string path = run.folder / "model.arpa";
  std::ofstream(path) << "\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\n-0.5\t</s>\n"
                         "-0.5\tgood\n-3\tbad\n-5\t<unk>\n\n\\end\\\n";
  return path;
}

TEST(PrepareStages, LanguageKeepsWhatIsAskedFor) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine(kEnglish) + JsonLine(kGerman) + JsonLine("1 2 3 4 5"));
  run.config.language = contract::LanguageConfig{
      .detector = "cld2", .keep = {{.language = "en", .threshold = {}}}, .threshold = 0.5};

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), ElementsAre(kEnglish));
  EXPECT_EQ(Dropped(*corpus, "language_not_kept"), 1);
  EXPECT_EQ(Dropped(*corpus, "language_unknown"), 1);
}

TEST(PrepareStages, BucketsOfPerplexityFollowFromTheCorpus) {
  Preparation run;
  run.config.exact_dedup.reset();
  std::string corpus_text;
  for (int bad = 0; bad < 10; ++bad) {
    std::string text;
    for (int word = 0; word < 10; ++word) text += word < bad ? "bad " : "good ";
    corpus_text += JsonLine(text);
  }
  run.AddFile("a.jsonl", corpus_text);
  run.config.perplexity = contract::PerplexityConfig{.models = {{.arpa = WriteModel(run)}},
                                                     .unit = "words",
                                                     .normalize = true,
                                                     .head_percentile = 30,
                                                     .middle_percentile = 60,
                                                     .keep = {"head", "middle"}};

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), SizeIs(6));
  EXPECT_EQ(Dropped(*corpus, "perplexity_bucket"), 4);
  // Which record went, and why, is kept.
  auto dataset = AuditedDataset::Open(run.config.output);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  auto losses = (*dataset)->audit().LossesOf(0);
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_THAT(*losses, SizeIs(4));
  EXPECT_EQ(losses->begin()->first, 6u);
  EXPECT_EQ(losses->begin()->second.perplexity.bucket, PerplexityBucket::kTail);
}

TEST(PrepareStages, AThresholdOfPerplexityNeedsNoCorpus) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine("good good good") + JsonLine("bad bad bad"));
  run.config.perplexity = contract::PerplexityConfig{.models = {{.arpa = WriteModel(run)}},
                                                     .unit = "words",
                                                     .normalize = true,
                                                     .head_percentile = 30,
                                                     .middle_percentile = 60,
                                                     .max = 20};

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), ElementsAre("good good good"));
  EXPECT_EQ(Dropped(*corpus, "perplexity_too_high"), 1);
}

TEST(PrepareStages, PersonalDataIsReplacedOrCostsTheDocument) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine("Write to jane.doe@example-mail.com today.") +
                             JsonLine("The server 8.8.4.4 is down."));
  run.config.pii = contract::PiiConfig{
      .parity = "none", .action = "replace", .types = {{.type = "ipv4", .action = "drop", .replacement = ""}}};

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), ElementsAre("Write to <EMAIL> today."));
  EXPECT_EQ(Dropped(*corpus, "pii_ipv4"), 1);
  EXPECT_EQ(corpus->report["counters"]["personal data found: email"], 1);
}

TEST(PrepareStages, LengthsAreBalanced) {
  Preparation run;
  std::string corpus_text;
  for (int i = 0; i < 400; ++i) corpus_text += JsonLine("short document number " + std::to_string(1000 + i));
  for (int i = 0; i < 10; ++i) corpus_text += JsonLine(std::to_string(1000 + i) + std::string(1000, 'x'));
  run.AddFile("a.jsonl", corpus_text);
  run.config.length_balance =
      contract::LengthBalanceConfig{.edges = {500}, .weights = {1, 4}, .repeat_max = 1, .seed = 1};

  ASSERT_TRUE(run.Run().ok());

  int64_t shorter = 0, longer = 0;
  for (const std::string& document : run.Documents()) (document.size() < 500 ? shorter : longer) += document.size() + 1;
  EXPECT_EQ(longer, 10 * 1005);
  EXPECT_NEAR(shorter, longer / 4.0, longer / 8.0);
}

TEST(PrepareStages, ADamagedFileGivesItsGoodPart) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine("whole"));
  // The start of a gzip member whose stored block says more than there is.
  std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\3\x01\x20\0\xdf\xff", 15);
  run.AddFile("b.jsonl.gz", gzip + JsonLine("part"));

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->damaged_files, 1);
  EXPECT_THAT(run.Documents(), ElementsAre("whole", "part"));
  EXPECT_THAT(run.Rejects(), testing::Contains(HasSubstr("truncated")));
}

}  // namespace
}  // namespace llmctl::data
