// A dataset of texts, as bytes, for tests of what looks at datasets.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/data/written_dataset.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

class TextDataset {
 public:
  explicit TextDataset(const std::vector<std::string>& train, const std::vector<std::string>& validation = {}) {
    DatasetManifest manifest{.tokenizer = "byte", .vocabulary_size = 260, .end_of_document = 256};
    manifest.splits = {Write("train", train)};
    if (!validation.empty()) manifest.splits.push_back(Write("validation", validation));
    manifest.source_json = "{}";
    EXPECT_TRUE(WriteManifest(path(), manifest).ok());
  }

  std::string path() const { return folder_.path(); }

 private:
  SplitInfo Write(const std::string& split, const std::vector<std::string>& texts) {
    auto tokenizer = *MakeTokenizer("byte");
    Documents documents;
    for (const std::string& text : texts) {
      tokenizer->Encode(text, documents.emplace_back());
      documents.back().push_back(tokenizer->end_of_document());
    }
    return WriteSplit(path(), split, 260, documents);
  }

  TemporaryDirectory folder_;
};

}  // namespace llmctl::data
