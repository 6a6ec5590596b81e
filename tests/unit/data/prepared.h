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
#include "worker/data/prepare/prepare.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

class Preparation {
 public:
  Preparation() {
    MakeDirectories(folder / "in").IgnoreError();
    options.inputs = {folder / "in"};
    options.output = folder / "out";
    options.validation_fraction = 0;
  }

  void AddFile(const std::string& name, const std::string& content) {
    std::ofstream(folder / ("in/" + name), std::ios::binary) << content;
  }

  absl::StatusOr<PrepareSummary> Run() {
    return Prepare(options, [](const PrepareProgress&) {});
  }

  // The documents of a split, in order.
  std::vector<std::string> Documents(const std::string& split = "train") const {
    auto reader = ShardReader::Open(options.output, split);
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
    std::ifstream file(options.output + "/rejects.jsonl");
    for (std::string line; std::getline(file, line);) {
      nlohmann::json json = nlohmann::json::parse(line);
      std::string path = json["file"];
      out.push_back(path.substr(path.rfind('/') + 1) + ":" + json["line"].dump() + ":" + json["byte"].dump() + " " +
                    json["reason"].get<std::string>());
    }
    return out;
  }

  TemporaryDirectory folder;
  PrepareOptions options;
};

// A line of JSON with this text.
inline std::string JsonLine(const std::string& text) { return nlohmann::json{{"text", text}}.dump() + "\n"; }

}  // namespace llmctl::data
