// How much of what is in a text is found, and how much of what is found is in it, type by type: on labelled.jsonl,
// which make_labelled.py makes of other packages' data. A find counts when its place and type are the label's exactly.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/data/pii/default_rules.h"
#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Row {
  std::string text;
  std::vector<PiiSpan> spans;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  std::ifstream file(std::string(LLM_FIXTURES) + "/labelled.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    Row row;
    for (const Json& piece : json["text"]) row.text += piece.get<std::string>();
    for (const Json& span : json["spans"]) {
      row.spans.push_back({span[0], span[1], *ParsePiiType(span[2].get<std::string>())});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(Labelled, EachTypeIsFoundAndLittleElse) {
  PiiCleaner cleaner(DefaultRules());
  std::array<int, kPiiTypes> labels = {}, finds = {}, both = {};

  const std::vector<Row> rows = Rows();
  for (const Row& row : rows) {
    for (const PiiSpan& span : row.spans) ++labels[static_cast<size_t>(span.type)];
    for (const PiiSpan& span : cleaner.Find(row.text)) {
      ++finds[static_cast<size_t>(span.type)];
      both[static_cast<size_t>(span.type)] += std::count(row.spans.begin(), row.spans.end(), span);
    }
  }

  EXPECT_GT(rows.size(), 1500u);
  for (int type = 0; type < kPiiTypes; ++type) {
    const double recall = 1.0 * both[type] / labels[type], precision = 1.0 * both[type] / finds[type];
    std::cout << PiiTypeName(static_cast<PiiType>(type)) << ": " << labels[type] << " labels, recall " << recall
              << ", precision " << precision << "\n";
    EXPECT_GE(labels[type], 40) << PiiTypeName(static_cast<PiiType>(type));
    EXPECT_GE(recall, 0.90) << PiiTypeName(static_cast<PiiType>(type));
    EXPECT_GE(precision, 0.95) << PiiTypeName(static_cast<PiiType>(type));
  }
}

TEST(Labelled, ACleanedTextHasNothingLeft) {
  PiiCleaner cleaner(DefaultRules());
  PiiCounters counters;

  for (const Row& row : Rows()) {
    std::string text = row.text;
    cleaner.Apply(text, counters);
    const std::string once = text;
    cleaner.Apply(text, counters);
    EXPECT_EQ(text, once);
  }
}

}  // namespace
}  // namespace llmctl::data
