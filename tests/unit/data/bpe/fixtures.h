// The vocabularies that make_expected.py trained, as files and as tokenizers.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "worker/data/tokenizer/bpe_tokenizer.h"

namespace llmctl::data {

inline std::string FixturePath(const std::string& name) { return "tests/unit/data/bpe/" + name; }

inline std::string FixtureText(const std::string& name) {
  absl::StatusOr<std::string> text = ReadFile(FixturePath(name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

inline std::unique_ptr<BpeTokenizer> FixtureTokenizer(const std::string& pattern, const BpeOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<BpeTokenizer>> tokenizer = ReadBpeTokenizer(FixturePath(pattern + ".json"), options);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

inline std::vector<int32_t> Ids(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, ids);
  return ids;
}

}  // namespace llmctl::data
