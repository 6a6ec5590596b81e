#include "worker/data/pipeline/prepare_corpus.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/prepared_corpus.h"
#include "worker/data/shards/dataset_check.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), ElementsAre("first\nfile\n", "second", "third"));
  EXPECT_EQ(corpus->manifest.splits[0].documents, 3);
  EXPECT_EQ(corpus->manifest.splits[0].tokens, 11 + 6 + 5 + 3);
  EXPECT_EQ(corpus->digest, *ManifestDigest(run.config.output));
  EXPECT_TRUE(VerifyDataset(run.config.output).ok());
  EXPECT_THAT(run.Rejects(), IsEmpty());
}

TEST(Prepare, OutputIsTheSameForAnyNumberOfThreadsAndAnyFolder) {
  std::vector<std::string> outputs;
  for (int threads : {1, 2, 5}) {
    Preparation run;
    run.AddFile("a.jsonl", DirtyCorpus(9000));
    run.config.threads = threads;
    run.config.validation_fraction = 0.1;
    ASSERT_TRUE(run.Run().ok());
    outputs.push_back(run.Everything());
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
}

TEST(Prepare, TheFirstOfEqualDocumentsStays) {
  Preparation run;
  run.AddFile("a.jsonl", JsonLine("one") + JsonLine("two") + JsonLine("one"));
  run.AddFile("b.jsonl", JsonLine("e\xcc\x81") + JsonLine("\xc3\xa9") + JsonLine("two"));

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok());
  EXPECT_THAT(run.Documents(), ElementsAre("one", "two", "\xc3\xa9"));
  EXPECT_EQ(Dropped(*corpus, "exact_duplicate.document"), 3);
}

TEST(Prepare, TheSplitOfADocumentDoesNotDependOnOthers) {
  Preparation small, large;
  std::string half, other;
  for (int i = 0; i < 400; ++i) (i % 2 ? half : other) += JsonLine("document number " + std::to_string(i));
  small.AddFile("a.jsonl", half);
  large.AddFile("a.jsonl", other + half);
  small.config.validation_fraction = large.config.validation_fraction = 0.25;
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

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  // a twice, b once, end of document once.
  ASSERT_TRUE(corpus.ok());
  EXPECT_NEAR(corpus->manifest.unigram_entropy, 0.5 * std::log(2) + 0.5 * std::log(4), 1e-12);
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
  EXPECT_THAT(std::string(status.message()), HasSubstr("text_missing"));
  EXPECT_THAT(run.Rejects(), ElementsAre("a.jsonl:1:0 text_missing", "a.jsonl:2:14 text_missing"));
  EXPECT_FALSE(fs::exists(run.config.output + "/manifest.json"));
  // Nothing is in the way of the next try.
  run.config.sources[0].text_field = "body";
  EXPECT_TRUE(run.Run().ok());
}

TEST(Prepare, AFailureInTheMiddleLeavesNoManifest) {
  Preparation run;
  run.AddFile("a.txt", "old");
  ASSERT_TRUE(run.Run().ok());
  run.AddFile("b.txt", "new");
  run.options.force = true;
  // A folder where the shard should go.
  fs::remove(run.config.output + "/train.idx");
  fs::create_directories(run.config.output + "/train.idx/x");

  EXPECT_FALSE(run.Run().ok());
  EXPECT_FALSE(fs::exists(run.config.output + "/manifest.json"));
}

// Several tasks of several segments each, whatever is to be done with them.
void MakeManyTasks(Preparation& run) {
  run.options.limits = {.task_bytes = 300000, .segment_bytes = 100000};
}

// Every stage that keeps something between tasks.
void AddStages(Preparation& run) {
  run.config.near_dedup = contract::NearDedupConfig{
      .parity = "none", .bands = 14, .rows = 8, .shingle_words = 2, .seed = 1};
  run.config.exact_dedup->units = {"document", "line"};
  run.config.exact_dedup->bytes_min = 20;
}

std::string WordyCorpus(int documents) {
  std::string corpus;
  for (int i = 0; i < documents; ++i) {
    std::string text = "Document " + std::to_string(i % (documents - documents / 10)) + " begins.\n";
    for (int word = 0; word < 40; ++word) text += "word" + std::to_string((i / 3 * 31 + word * 7) % 977) + " ";
    text += "\nThe same last line in all of them.";
    corpus += JsonLine(text);
  }
  return corpus;
}

TEST(Prepare, HowTheInputIsCutIntoTasksDoesNotShow) {
  std::vector<std::string> outputs;
  for (bool many : {false, true}) {
    Preparation run;
    AddStages(run);
    if (many) MakeManyTasks(run);
    run.AddFile("a.jsonl", WordyCorpus(4000));
    run.AddFile("b.jsonl", "{\"text\": 1}\n" + WordyCorpus(100) + "{\"text\": \n");
    absl::StatusOr<PreparedCorpus> corpus = run.Run();
    ASSERT_TRUE(corpus.ok()) << corpus.status();
    EXPECT_GT(Dropped(*corpus, "near_duplicate"), 100);
    EXPECT_GT(Dropped(*corpus, "exact_duplicate.document"), 50);
    EXPECT_THAT(run.Rejects(), testing::Contains("b.jsonl:1:0 text_not_a_string"));
    EXPECT_THAT(run.Rejects(), testing::Contains(testing::StartsWith("b.jsonl:102:")));
    outputs.push_back(run.Everything());
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

TEST(Prepare, ALineInTheMiddleOfACutFileKeepsItsNumber) {
  Preparation run;
  MakeManyTasks(run);
  std::string corpus;
  for (int i = 0; i < 3000; ++i) {
    corpus += i == 2500 ? "no json\n" : JsonLine("document " + std::to_string(i) + std::string(400, 'x'));
  }
  run.AddFile("a.jsonl", corpus);

  ASSERT_TRUE(run.Run().ok());

  ASSERT_EQ(run.Rejects().size(), 1u);
  EXPECT_THAT(run.Rejects()[0], testing::StartsWith("a.jsonl:2501:"));
}

TEST(Prepare, WhatAnEarlierRunLeftIsUsedAndNothingElse) {
  Preparation run, fresh;
  for (Preparation* each : {&run, &fresh}) {
    AddStages(*each);
    MakeManyTasks(*each);
    each->AddFile("a.jsonl", WordyCorpus(3000));
  }
  run.options.keep_work = true;
  run.config.near_dedup->bands = 4;
  ASSERT_TRUE(run.Run().ok());
  // Half of what tasks left is lost, the machine has started again since, and the specification is another one.
  int number = 0;
  std::vector<fs::path> lost;
  for (const auto& entry : fs::recursive_directory_iterator(run.Output(".work"))) {
    std::string folder = entry.path().parent_path().filename();
    bool of_tasks = folder.starts_with("clean-") || folder.starts_with("tokens-");
    if (of_tasks && ++number % 2 == 0) lost.push_back(entry.path());
  }
  ASSERT_GT(lost.size(), 10u);
  for (const fs::path& path : lost) fs::remove(path);
  ASSERT_TRUE(WriteFileAtomically(run.Output(".work/journal"), "another-boot\n").ok());
  run.config.near_dedup->bands = 14;
  run.options.force = true;

  absl::StatusOr<PreparedCorpus> again = run.Run();

  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(fresh.Run().ok());
  EXPECT_EQ(run.Everything(), fresh.Everything());
}

TEST(Prepare, TwoRunsDoNotWriteToOneFolder) {
  Preparation run;
  run.AddFile("a.txt", "text");
  ASSERT_TRUE(MakeDirectories(run.Output(".work")).ok());
  int fd = ::open(run.Output(".work/lock").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);

  absl::Status refused = run.Run().status();

  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  ::close(fd);
  EXPECT_TRUE(run.Run().ok());
}

TEST(Prepare, SourcesAreMixedAndPacked) {
  Preparation run;
  run.AddFile("a.jsonl", WordyCorpus(300));
  ASSERT_TRUE(MakeDirectories(run.folder / "books").ok());
  std::ofstream(run.folder / "books/b.txt") << std::string(5000, 'b');
  run.config.sources.push_back({.name = "books", .paths = {run.folder / "books"}, .text_field = "text",
                                .id_field = "id", .format = "auto"});
  run.config.mix = contract::MixConfig{
      .by = "source", .method = "explicit", .weights = {{.group = "in", .weight = 3}, {.group = "books", .weight = 1}}};
  run.config.pack = contract::PackConfig{.sequence_length = 512, .long_documents = "cut", .window_tokens = 1 << 20};

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  const SplitInfo& train = corpus->manifest.splits[0];
  ASSERT_EQ(train.groups.size(), 2u);
  EXPECT_EQ(train.groups[0].name, "in");
  EXPECT_EQ(train.groups[0].weight, 0.75);
  EXPECT_EQ(train.groups[1].tokens, 5001);
  ASSERT_TRUE(corpus->manifest.packing.has_value());
  EXPECT_EQ(corpus->manifest.packing->row_tokens, 513);
  EXPECT_EQ(train.packed->cut_documents, 1);
  EXPECT_TRUE(VerifyDataset(run.config.output).ok()) << VerifyDataset(run.config.output);
}

// Looks at the progress from another thread, as whoever shows it does.
class Watcher : public Pipeline::Observer {
 public:
  ~Watcher() override { EXPECT_EQ(begun, ended); }
  void Begin(int, absl::string_view, const Stage&, const StageProgress& progress) override {
    ++begun;
    watching_ = true;
    thread_ = std::thread([this, &progress] {
      while (watching_) seen_ = progress.done.load();
    });
  }
  absl::Status End(int, bool) override {
    ++ended;
    watching_ = false;
    thread_.join();
    return absl::OkStatus();
  }
  absl::Status Check() override { return absl::OkStatus(); }

  int begun = 0;
  int ended = 0;

 private:
  std::thread thread_;
  std::atomic<bool> watching_ = false;
  std::atomic<int64_t> seen_ = 0;
};

TEST(Prepare, ProgressIsNotLookedAtAfterAFailure) {
  Preparation run;
  run.AddFile("a.jsonl", "{\"body\": 1}\n");  // no document: the last stage fails
  Watcher watcher;

  EXPECT_FALSE(PrepareCorpus(run.config, run.options, &watcher).ok());

  EXPECT_GT(watcher.begun, 3);
}

TEST(Prepare, TooLittleMemoryIsRefusedWithHowMuchIsNeeded) {
  Preparation run;
  run.AddFile("a.txt", "text");
  run.config.memory = "64M";

  EXPECT_THAT(std::string(run.Run().status().message()), HasSubstr("expected at least"));
}

TEST(VerifyDataset, FindsADamagedByteInEveryFile) {
  Preparation run;
  run.config.validation_fraction = 0.5;
  for (int i = 0; i < 20; ++i) run.AddFile(std::to_string(i) + ".txt", "document " + std::to_string(i));
  ASSERT_TRUE(run.Run().ok());
  ASSERT_TRUE(VerifyDataset(run.config.output).ok());
  for (const char* name : {"manifest.json", "train.bin", "train.idx", "validation.bin", "validation.idx"}) {
    std::string path = run.config.output + "/" + name;
    std::string whole = *ReadFile(path);
    std::string damaged = whole;
    size_t at = std::string(name) == "manifest.json" ? whole.find("\"tokens\": ") + 10 : whole.size() / 2;
    damaged[at] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    EXPECT_FALSE(VerifyDataset(run.config.output).ok()) << name;
    ASSERT_TRUE(WriteFileAtomically(path, whole).ok());
  }
}

}  // namespace
}  // namespace llmctl::data
