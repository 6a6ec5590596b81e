// datatrove_pii.jsonl: made-up texts and what datatrove 0.10.1's PIIFormatter makes of them with EMAIL and IP as its
// replacements.
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

PiiSettings DatatroveSettings() {
  PiiSettings settings;
  settings.mode = PiiMode::kDatatrove;
  settings.Of(PiiType::kEmail).replacement = "EMAIL";
  settings.Of(PiiType::kIpv4).replacement = "IP";
  return settings;
}

TEST(DatatrovePii, TextsBecomeWhatDatatroveMakesOfThem) {
  absl::StatusOr<std::unique_ptr<PiiRules>> rules = PiiRules::Create(DatatroveSettings());
  ASSERT_TRUE(rules.ok()) << rules.status();
  PiiCleaner cleaner(**rules);
  PiiCounters counters;
  std::ifstream file(std::string(LLM_FIXTURES) + "/datatrove_pii.jsonl");

  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    std::string text = row["text"];
    EXPECT_TRUE(cleaner.Apply(text, counters).keep);
    EXPECT_EQ(text, row["out"].get<std::string>()) << "of " << row["text"];
  }

  EXPECT_EQ(counters.documents, 141);
}

// datatrove's own expression takes time with the square of the length of such a run.
TEST(DatatrovePii, LongRunsAreReadOnce) {
  absl::StatusOr<std::unique_ptr<PiiRules>> rules = PiiRules::Create(DatatroveSettings());
  ASSERT_TRUE(rules.ok()) << rules.status();
  PiiCleaner cleaner(**rules);
  PiiCounters counters;
  for (const char* piece : {"a-", "a.", "a@", "1.2.", "a@b.", "@"}) {
    std::string text;
    while (text.size() < 1000000) text += piece;
    const size_t bytes = text.size();

    cleaner.Apply(text, counters);

    EXPECT_LE(cleaner.work(), 6 * bytes) << piece;
  }
}

}  // namespace
}  // namespace llmctl::data
