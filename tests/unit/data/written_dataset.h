// A small dataset on disk, for tests of what reads datasets.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"
#include "worker/data/shards/dataset.h"

namespace llmctl::data {

using Documents = std::vector<std::vector<int32_t>>;

inline SplitInfo WriteSplit(const std::string& directory, const std::string& split, int vocabulary_size,
                            const Documents& documents) {
  auto writer = ShardWriter::Create(directory, split, vocabulary_size);
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (const std::vector<int32_t>& document : documents) EXPECT_TRUE((*writer)->AddDocument(document).ok());
  absl::StatusOr<SplitInfo> info = (*writer)->Finish();
  EXPECT_TRUE(info.ok()) << info.status();
  return *info;
}

inline DatasetManifest WriteDataset(const std::string& directory, int vocabulary_size, const Documents& documents) {
  DatasetManifest manifest;
  manifest.tokenizer = "byte";
  manifest.vocabulary_size = vocabulary_size;
  manifest.end_of_document = 0;
  manifest.unigram_entropy = 1.5;
  manifest.source_json = R"({"made": "by a test"})";
  manifest.splits = {WriteSplit(directory, "train", vocabulary_size, documents)};
  EXPECT_TRUE(WriteManifest(directory, manifest).ok());
  return manifest;
}

}  // namespace llmctl::data
