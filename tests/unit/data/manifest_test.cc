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
