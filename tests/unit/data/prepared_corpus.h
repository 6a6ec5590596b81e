// Runs preparation on inputs given as strings and reads back what came out.
#pragma once

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/pipeline/prepare_corpus.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

class Preparation {
 public:
  // Everything of the folder "in"; equal documents are dropped.
  Preparation() {
    MakeDirectories(folder / "in").IgnoreError();
    config.name = "test";
    config.output = folder / "out";
    config.memory = "1G";
    config.threads = 2;
    config.workers = 1;
    config.sources.push_back(
        {.name = "in", .paths = {folder / "in"}, .text_field = "text", .id_field = "id", .format = "auto"});
    config.read = {.invalid_utf8 = "replace", .truncated = "refuse", .document_bytes_max = "64M", .giant = "split"};
    config.normalize = {.form = "NFC", .controls = "remove", .whitespace = "keep"};
    config.exact_dedup = contract::ExactDedupConfig{.units = {"document"}};
    config.tokenizer = "byte";
  }

  void AddFile(const std::string& name, const std::string& content) {
    std::ofstream(folder / ("in/" + name), std::ios::binary) << content;
  }

  absl::StatusOr<PreparedCorpus> Run() { return PrepareCorpus(config, options, nullptr); }

  std::string Output(const std::string& name) const { return config.output + "/" + name; }
  // What a run leaves that must not depend on how it ran, as one text. Rejects name files, which lie elsewhere.
  std::string Everything() const {
    std::string all;
    for (const char* name : {"manifest.json", "train.bin", "train.idx", "validation.bin", "validation.idx"}) {
      all += *ReadFile(Output(name));
    }
    for (const std::string& reject : Rejects()) all += reject + "\n";
    return all;
  }

  // The documents of a split, in order.
  std::vector<std::string> Documents(const std::string& split = "train") const {
    auto reader = ShardReader::Open(config.output, split);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<int32_t> tokens((*reader)->tokens()), document;
    (*reader)->Copy(0, absl::MakeSpan(tokens));
    auto tokenizer = *MakeTokenizer("byte");
    std::vector<std::string> out;
    for (int32_t token : tokens) {
      if (token != tokenizer->end_of_document()) {
        document.push_back(token);
        continue;
      }
      out.push_back(tokenizer->Decode(document));
      document.clear();
    }
    EXPECT_TRUE(document.empty()) << "the last document has no end";
    return out;
  }

  // "name:line:byte reason" for each line of the rejects file.
  std::vector<std::string> Rejects() const {
    std::vector<std::string> out;
    std::ifstream file(Output("rejects.jsonl"));
    for (std::string line; std::getline(file, line);) {
      nlohmann::json json = nlohmann::json::parse(line);
      std::string path = json["file"];
      out.push_back(path.substr(path.rfind('/') + 1) + ":" + json["line"].dump() + ":" + json["byte"].dump() + " " +
                    json["reason"].get<std::string>());
    }
    return out;
  }

  TemporaryDirectory folder;
  contract::CorpusConfig config;
  PrepareOptions options;
};

// How many documents a run dropped for this reason.
inline int64_t Dropped(const PreparedCorpus& corpus, const std::string& reason) {
  const nlohmann::json& dropped = corpus.report["total"]["dropped"];
  return dropped.contains(reason) ? dropped[reason]["documents"].get<int64_t>() : 0;
}

// A line of JSON with this text.
inline std::string JsonLine(const std::string& text) { return nlohmann::json{{"text", text}}.dump() + "\n"; }

}  // namespace llmctl::data
