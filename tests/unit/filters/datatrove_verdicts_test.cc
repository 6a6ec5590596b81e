// What datatrove 0.10.1 says of some hundred made-up texts, filter by filter, at its defaults and with the terminal
// mark of C4 switched off as FineWeb does. datatrove_verdicts_*.jsonl: a line per text with the reason each filter
// gives ("" where it keeps), the C4 filters' version of the text as line numbers of the text and lines that are not in
// it, and counts of gopher_quality.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "worker/data/filters/document_filter.h"
#include "worker/data/text/line_iterator.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Filter {
  explicit Filter(FilterSettings settings) : rules(std::move(settings)), filter(rules) {}
  FilterRules rules;
  DocumentFilter filter;
};

// The settings of one filter alone, by the name in the fixture.
FilterSettings SettingsOf(const std::string& name, FilterMode mode) {
  FilterSettings settings;
  settings.mode = mode;
  if (name == "gopher_repetition") settings.gopher_repetition.emplace();
  if (name == "gopher_quality") settings.gopher_quality.emplace();
  if (name == "c4_quality") settings.c4.emplace();
  if (name == "c4_quality_fineweb") settings.c4.emplace().terminal_mark_required = false;
  if (name == "fineweb_quality") settings.fineweb.emplace();
  if (name == "c4_paragraph") settings.paragraphs.emplace();
  return settings;
}

std::vector<Json> Rows() {
  std::vector<Json> rows;
  for (const char* name : {"/datatrove_verdicts_1.jsonl", "/datatrove_verdicts_2.jsonl"}) {
    std::ifstream file(std::string(LLM_FIXTURES) + name);
    for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  }
  return rows;
}

class Filters {
 public:
  explicit Filters(FilterMode mode) : mode_(mode) {}
  DocumentFilter& Get(const std::string& name) {
    std::unique_ptr<Filter>& filter = filters_[name];
    if (filter == nullptr) filter = std::make_unique<Filter>(SettingsOf(name, mode_));
    return filter->filter;
  }
  const FilterSettings& SettingsFor(const std::string& name) { return filters_.at(name)->rules.settings(); }

 private:
  const FilterMode mode_;
  std::map<std::string, std::unique_ptr<Filter>> filters_;
};

std::string OurReason(const Verdict& verdict) {
  if (verdict.rule == FilterRule::kFewParagraphs) return "< 3 paragraphs";
  return std::string(ReasonName(verdict.rule));
}

std::string TextAfter(const Json& row, const std::string& filter) {
  if (!row.contains("after") || !row["after"].contains(filter)) return row["text"];
  std::vector<std::string> lines;
  std::string text = row["text"];
  LineIterator iterator(text);
  for (absl::string_view line; iterator.Next(line);) lines.emplace_back(line);
  std::string out;
  for (const Json& line : row["after"][filter]) {
    out += (line.is_string() ? line.get<std::string>() : lines.at(line.get<size_t>())) + "\n";
  }
  out.pop_back();
  return out;
}

TEST(DatatroveVerdicts, AreOursWithTheSameReason) {
  Filters filters(FilterMode::kDatatrove);
  int verdicts = 0;

  for (const Json& row : Rows()) {
    for (const auto& [name, reason] : row["verdicts"].items()) {
      std::string text = row["text"];
      Verdict verdict = filters.Get(name).Run(text, "en");
      EXPECT_EQ(OurReason(verdict), reason.get<std::string>()) << name << " of " << row["name"];
      bool rewrites = name == "c4_quality" || name == "c4_quality_fineweb";
      std::string expected = rewrites && verdict.keep() ? TextAfter(row, name) : row["text"].get<std::string>();
      EXPECT_EQ(text, expected) << name << " of " << row["name"];
      ++verdicts;
    }
  }

  EXPECT_EQ(verdicts, 491);
}

TEST(DatatroveVerdicts, KeepTheSameTextsInTheDefaultMode) {
  Filters filters(FilterMode::kDefault);

  for (const Json& row : Rows()) {
    for (const auto& [name, reason] : row["verdicts"].items()) {
      std::string text = row["text"];
      EXPECT_EQ(filters.Get(name).Run(text, "en").keep(), reason == "") << name << " of " << row["name"];
    }
  }
}

TEST(DatatroveVerdicts, FollowFromTheNumbersAlone) {
  Filters filters(FilterMode::kDatatrove);

  for (const Json& row : Rows()) {
    for (const auto& [name, reason] : row["verdicts"].items()) {
      std::string text = row["text"];
      std::string rewritten;
      FilterStats stats = filters.Get(name).Measure(text, "en", rewritten);
      absl::StatusOr<Verdict> verdict = Judge(stats, filters.SettingsFor(name));
      ASSERT_TRUE(verdict.ok()) << verdict.status().message();
      EXPECT_EQ(OurReason(*verdict), reason.get<std::string>()) << name << " of " << row["name"];
      if (verdict->keep()) {
        EXPECT_EQ(rewritten, TextAfter(row, name));
      }
    }
  }
}

TEST(DatatroveVerdicts, StandOnTheSameCounts) {
  Filters filters(FilterMode::kDatatrove);

  for (const Json& row : Rows()) {
    if (!row.contains("stats")) continue;
    std::string text = row["text"];
    std::string rewritten;
    FilterStats stats = filters.Get("gopher_quality").Measure(text, "en", rewritten);
    EXPECT_EQ(stats.gopher_quality->words, row["stats"]["n_words"]) << row["name"];
    EXPECT_EQ(stats.gopher_quality->plain_words, row["stats"]["n_non_symbol_words"]) << row["name"];
    EXPECT_EQ(stats.gopher_quality->plain_word_characters, row["stats"]["chars_non_symbol"]) << row["name"];
    EXPECT_EQ(stats.gopher_quality->letter_words, row["stats"]["alpha_words"]) << row["name"];
  }
}

// A unit, how often it is written, what gopher_quality says: documents about the longest that it keeps.
TEST(DatatroveVerdicts, OfLongDocumentsAreOursToo) {
  struct Case {
    const char* unit;
    int times;
    const char* reason;
  };
  Filters filters(FilterMode::kDatatrove);
  const Case cases[] = {{"the cat with ", 33333, ""},
                        {"the cat ", 50000, "gopher_enough_stop_words"},
                        {"the cat with ", 33335, "gopher_long_doc"}};

  for (const Case& c : cases) {
    std::string text;
    for (int i = 0; i < c.times; ++i) text += c.unit;
    EXPECT_EQ(ReasonName(filters.Get("gopher_quality").Run(text, "en").rule), c.reason) << c.times;
  }
}

}  // namespace
}  // namespace llmctl::data
