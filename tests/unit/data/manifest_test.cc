#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "tests/unit/data/written_dataset.h"

namespace llmctl::data {
namespace {

using ::testing::HasSubstr;

TEST(DatasetManifest, RoundTripsAndIsIdentifiedByItsBytes) {
  TemporaryDirectory folder;
  DatasetManifest written = WriteDataset(folder.path(), 260, {{1, 2}});

  absl::StatusOr<DatasetManifest> read = ReadManifest(folder.path());

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tokenizer, "byte");
  EXPECT_EQ(read->vocabulary_size, 260);
  EXPECT_EQ(read->unigram_entropy, 1.5);
  ASSERT_EQ(read->splits.size(), 1u);
  EXPECT_EQ(read->splits[0].bin_checksum, written.splits[0].bin_checksum);
  EXPECT_EQ(read->source_json, R"({"made":"by a test"})");
  EXPECT_EQ(*ManifestDigest(folder.path()), Sha256(*ReadFile(folder / "manifest.json")));
}

// A packed split of two groups.
DatasetManifest PackedManifest() {
  DatasetManifest manifest{.tokenizer = "tokenizer.json", .vocabulary_size = 1000, .end_of_document = 3};
  manifest.tokenizer_digest = "abc";
  manifest.packing = PackingInfo{.row_tokens = 9, .padding_id = 3};
  manifest.source_json = "{}";
  SplitInfo split{.name = "train", .documents = 5, .tokens = 30, .bin_checksum = "x", .idx_checksum = "y"};
  split.packed = PackedFigures{.rows = 4, .pieces = 6, .cut_documents = 1, .truncated_documents = 2,
                               .truncated_tokens = 7, .padding_tokens = 6};
  split.groups = {{"wiki/en", 0, 3, 4, 21, 0.25}, {"wiki/fr", 3, 4, 1, 9, 0.75}};
  manifest.splits = {split};
  return manifest;
}

TEST(DatasetManifest, KeepsRowsGroupsAndTheTokenizersDigest) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteManifest(folder.path(), PackedManifest()).ok());

  absl::StatusOr<DatasetManifest> read = ReadManifest(folder.path());

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tokenizer_digest, "abc");
  EXPECT_EQ(read->packing->row_tokens, 9);
  EXPECT_EQ(read->packing->padding_id, 3);
  const SplitInfo& split = read->splits[0];
  EXPECT_EQ(split.packed->rows, 4);
  EXPECT_EQ(split.packed->pieces, 6);
  EXPECT_EQ(split.packed->cut_documents, 1);
  EXPECT_EQ(split.packed->truncated_documents, 2);
  EXPECT_EQ(split.packed->truncated_tokens, 7);
  EXPECT_EQ(split.packed->padding_tokens, 6);
  ASSERT_EQ(split.groups.size(), 2u);
  EXPECT_EQ(split.groups[1].name, "wiki/fr");
  EXPECT_EQ(split.groups[1].begin, 3);
  EXPECT_EQ(split.groups[1].end, 4);
  EXPECT_EQ(split.groups[1].documents, 1);
  EXPECT_EQ(split.groups[1].tokens, 9);
  EXPECT_EQ(split.groups[1].weight, 0.75);
}

TEST(DatasetManifest, RefusesGroupsThatAreNoPartition) {
  auto refusal = [](void (*change)(DatasetManifest&)) {
    TemporaryDirectory folder;
    DatasetManifest manifest = PackedManifest();
    change(manifest);
    EXPECT_TRUE(WriteManifest(folder.path(), manifest).ok());
    return std::string(ReadManifest(folder.path()).status().message());
  };

  EXPECT_THAT(refusal([](DatasetManifest& m) { m.splits[0].groups[1].begin = 2; }), HasSubstr("expected 3"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.splits[0].groups[1].end = 5; }), HasSubstr("the split at 4"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.splits[0].groups[1].tokens = 10; }), HasSubstr("more tokens"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.splits[0].groups[1].weight = 0.7; }), HasSubstr("weights sum"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.splits[0].groups[1].weight = 2; }), HasSubstr("a share"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.packing.reset(); }), HasSubstr("packing"));
  EXPECT_THAT(refusal([](DatasetManifest& m) { m.packing->padding_id = 1000; }), HasSubstr("padding_id"));
}

TEST(DatasetManifest, WithoutOneTheErrorSaysHowToMakeIt) {
  TemporaryDirectory folder;

  absl::Status status = ReadManifest(folder.path()).status();

  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("llmctl data prepare"));
}

TEST(DatasetManifest, RefusesWhatItDoesNotUnderstand) {
  auto refusal = [](absl::string_view text) { return std::string(DecodeManifest(text, "m").status().message()); };
  std::string good = R"({"version": 1, "tokenizer": "byte", "vocabulary_size": 260, "end_of_document": 256,
    "unigram_entropy": 3, "source": {}, "splits": []})";
  ASSERT_EQ(refusal(good), "");

  auto with = [&](const std::string& from, const std::string& to) {
    return refusal(std::string(good).replace(good.find(from), from.size(), to));
  };
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("m.version"));
  EXPECT_THAT(with("260", "100"), HasSubstr("m.end_of_document: 256 is not in the vocabulary"));
  EXPECT_THAT(with("260", "\"260\""), HasSubstr("m.vocabulary_size"));
  EXPECT_THAT(with("\"source\"", "\"sauce\""), HasSubstr("m.source: is missing"));
  EXPECT_THAT(with("\"splits\": []", R"("splits": [{"name": "../x", "documents": 1, "tokens": 1, "bin_checksum": "",
    "idx_checksum": ""}])"),
              HasSubstr("m.splits[0].name"));
}

}  // namespace
}  // namespace llmctl::data
