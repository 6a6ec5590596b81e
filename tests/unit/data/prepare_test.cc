#include "worker/data/prepare/prepare.h"

#include <cmath>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/prepared.h"
#include "worker/data/prepare/dataset_check.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kOutputs[] = {"manifest.json",  "train.bin",      "train.idx",
                                "validation.bin", "validation.idx", "rejects.jsonl"};

// A corpus of several chunks with duplicates and faults spread over it.
std::string DirtyCorpus(int lines) {
  std::string corpus;
  for (int i = 0; i < lines; ++i) {
    corpus += JsonLine("document " + std::to_string(i * 7919 % (lines - lines / 10)) + std::string(400, 'a' + i % 26) +
                       " e\xcc\x81");
    if (i % 50 == 0) corpus += "{\"text\": \"caf\xe9 " + std::to_string(i) + "\"}\n";
    if (i % 70 == 0) corpus += "{\"text\": \n";
    if (i % 90 == 0) corpus += "\n";
  }
  return corpus;
}

TEST(Prepare, TextFilesAndJsonLinesBecomeDocumentsInOrder) {
  Preparation run;
  run.AddFile("a.txt", "first\r\nfile\n");
  run.AddFile("b.jsonl", JsonLine("second") + JsonLine("third"));

  absl::StatusOr<PrepareSummary> summary = run.Run();

  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(run.Documents(), ElementsAre("first\nfile\n", "second", "third"));
  EXPECT_EQ(summary->manifest.splits[0].documents, 3);
  EXPECT_EQ(summary->manifest.splits[0].tokens, 11 + 6 + 5 + 3);
  EXPECT_EQ(summary->digest, *ManifestDigest(run.options.output));
  EXPECT_TRUE(VerifyDataset(run.options.output).ok());
  EXPECT_THAT(run.Rejects(), IsEmpty());
}

TEST(Prepare, OutputIsTheSameForAnyNumberOfThreadsAndAnyFolder) {
  std::vector<std::string> outputs;
  for (int threads : {1, 2, 5}) {
    Preparation run;
    run.AddFile("a.jsonl", DirtyCorpus(9000));
    run.options.threads = threads;
    run.options.validation_fraction = 0.1;
    ASSERT_TRUE(run.Run().ok());
    std::string all;
    for (const char* name : kOutputs) {
      // The rejects name their files, which lie in another folder each time.
      if (std::string(name) != "rejects.jsonl") all += *ReadFile(run.options.output + "/" + name);
    }
    for (const std::string& reject : run.Rejects()) all += reject + "\n";
    outputs.push_back(all);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
}

TEST(Prepare, TheFirstOfEqualDocumentsStays) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine("one") + JsonLine("two") + JsonLine("one"));
  run.AddFile("b.jsonl", JsonLine("e\xcc\x81") + JsonLine("\xc3\xa9") + JsonLine("two"));

  absl::StatusOr<PrepareSummary> summary = run.Run();

  ASSERT_TRUE(summary.ok());
  EXPECT_THAT(run.Documents(), ElementsAre("one", "two", "\xc3\xa9"));
  EXPECT_THAT(run.Rejects(), ElementsAre("a.jsonl:3:30 duplicate", "b.jsonl:2:15 duplicate", "b.jsonl:3:29 duplicate"));
  EXPECT_EQ(summary->dropped["duplicate"], 3);
}

TEST(Prepare, TheSplitOfADocumentDoesNotDependOnOthers) {
  Preparation small, large;
  std::string half, other;
  for (int i = 0; i < 400; ++i) (i % 2 ? half : other) += JsonLine("document number " + std::to_string(i));
  small.AddFile("a.jsonl", half);
  large.AddFile("a.jsonl", other + half);
  small.options.validation_fraction = large.options.validation_fraction = 0.25;
  ASSERT_TRUE(small.Run().ok());
  ASSERT_TRUE(large.Run().ok());

  std::vector<std::string> few = small.Documents("validation"), many = large.Documents("validation");

  EXPECT_GT(few.size(), 25u);  // 50 expected, standard deviation 6
  EXPECT_LT(few.size(), 75u);
  std::set<std::string> in_many(many.begin(), many.end());
  for (const std::string& document : few) EXPECT_TRUE(in_many.contains(document)) << document;
  for (const std::string& document : small.Documents("train")) EXPECT_FALSE(in_many.contains(document)) << document;
}

TEST(Prepare, UnigramEntropyIsThatOfTheTrainingTokens) {
  Preparation run;
  run.AddFile("a.txt", "aab");

  absl::StatusOr<PrepareSummary> summary = run.Run();

  // a twice, b once, end of document once.
  ASSERT_TRUE(summary.ok());
  EXPECT_NEAR(summary->manifest.unigram_entropy, 0.5 * std::log(2) + 0.5 * std::log(4), 1e-12);
}

TEST(Prepare, RefusesToOverwriteWithoutForce) {
  Preparation run;
  run.AddFile("a.txt", "first");
  ASSERT_TRUE(run.Run().ok());
  run.AddFile("a.txt", "second");

  absl::Status refused = run.Run().status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--force"));
  EXPECT_THAT(run.Documents(), ElementsAre("first"));

  run.options.force = true;
  EXPECT_TRUE(run.Run().ok());
  EXPECT_THAT(run.Documents(), ElementsAre("second"));
}

TEST(Prepare, NoDocumentsIsAnErrorAndNoDataset) {
  Preparation run;
  run.AddFile("a.jsonl", "{\"body\": \"x\"}\n{\"body\": \"y\"}\n");

  absl::Status status = run.Run().status();

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 text_missing"));
  EXPECT_THAT(run.Rejects(), ElementsAre("a.jsonl:1:0 text_missing", "a.jsonl:2:14 text_missing"));
  EXPECT_FALSE(fs::exists(run.options.output + "/manifest.json"));
  // Nothing is in the way of the next try.
  run.options.text_field = "body";
  EXPECT_TRUE(run.Run().ok());
}

TEST(Prepare, AFailureInTheMiddleLeavesNoManifest) {
  Preparation run;
  run.AddFile("a.txt", "old");
  ASSERT_TRUE(run.Run().ok());
  run.AddFile("b.txt", "new");
  run.options.force = true;
  // A folder where the shard should go.
  fs::remove(run.options.output + "/train.idx");
  fs::create_directories(run.options.output + "/train.idx/x");

  EXPECT_FALSE(run.Run().ok());
  EXPECT_FALSE(fs::exists(run.options.output + "/manifest.json"));
}

TEST(Prepare, SaysAllThatIsWrongWithItsOptions) {
  PrepareOptions options;
  options.validation_fraction = 1;
  options.threads = 0;

  std::string message(Prepare(options, [](const PrepareProgress&) {}).status().message());

  for (const char* name : {"--input", "--output", "--validation-fraction", "--threads"})
    EXPECT_THAT(message, HasSubstr(name));
}

TEST(VerifyDataset, FindsADamagedByteInEveryFile) {
  Preparation run;
  run.options.validation_fraction = 0.5;
  for (int i = 0; i < 20; ++i) run.AddFile(std::to_string(i) + ".txt", "document " + std::to_string(i));
  ASSERT_TRUE(run.Run().ok());
  ASSERT_TRUE(VerifyDataset(run.options.output).ok());
  for (const char* name : {"manifest.json", "train.bin", "train.idx", "validation.bin", "validation.idx"}) {
    std::string path = run.options.output + "/" + name;
    std::string whole = *ReadFile(path);
    std::string damaged = whole;
    size_t at = std::string(name) == "manifest.json" ? whole.find("\"tokens\": ") + 10 : whole.size() / 2;
    damaged[at] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    EXPECT_FALSE(VerifyDataset(run.options.output).ok()) << name;
    ASSERT_TRUE(WriteFileAtomically(path, whole).ok());
  }
}

}  // namespace
}  // namespace llmctl::data
