// Scores beside those of kenlm (kenlm_scores.jsonl, from make_fixtures.py).
#include "worker/data/perplexity/ngram_model.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "worker/data/perplexity/model_text.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

constexpr char kFolder[] = "tests/unit/data/perplexity/";

std::vector<Json> KenlmRows(const std::string& model) {
  std::ifstream file(absl::StrCat(kFolder, "kenlm_scores.jsonl"));
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) {
    Json row = Json::parse(line);
    if (row["model"] == model) rows.push_back(row);
  }
  return rows;
}

std::vector<absl::string_view> WordsOf(absl::string_view line) {
  static const ModelText* const text =
      new ModelText({.normalize = false, .skip_blank_lines = false}, /*tokenizer=*/nullptr);
  ModelTextReader reader(*text);
  std::vector<absl::string_view> words;
  reader.Start(line);
  reader.NextLine(words);
  return words;
}

void ExpectSameWords(NgramScorer& scorer, const Json& expected, const std::string& line) {
  size_t at = 0;
  scorer.Score([&](const WordScore& word) {
    ASSERT_LT(at, expected.size()) << line;
    EXPECT_EQ(word.log_probability, expected[at][0].get<float>()) << line << ", word " << at;
    EXPECT_EQ(word.matched, expected[at][1].get<int>()) << line << ", word " << at;
    EXPECT_EQ(!word.known, expected[at][2].get<bool>()) << line << ", word " << at;
    ++at;
  });
  EXPECT_EQ(at, expected.size()) << line;
}

class Kenlm : public ::testing::TestWithParam<const char*> {};

TEST_P(Kenlm, GivesEveryWordTheSameScore) {
  auto model = NgramModel::LoadFile(absl::StrCat(kFolder, GetParam()));
  ASSERT_TRUE(model.ok()) << model.status();
  NgramScorer scorer(*model);
  std::vector<Json> rows = KenlmRows(GetParam());
  ASSERT_GT(rows.size(), 60u);
  for (const Json& row : rows) {
    const std::string line = row["line"];
    for (bool whole : {true, false}) {
      scorer.Clear();
      scorer.BeginLine(whole);
      for (absl::string_view word : WordsOf(line)) scorer.AddWord(word);
      scorer.EndLine(whole);
      ExpectSameWords(scorer, row[whole ? "words" : "fragment"], line);
      if (!whole) continue;
      EXPECT_NEAR(scorer.Score().log_probability, row["score"].get<double>(), 1e-4) << line;
    }
  }
}

TEST_P(Kenlm, LinesTogetherScoreAsLinesAlone) {
  auto model = NgramModel::LoadFile(absl::StrCat(kFolder, GetParam()));
  NgramScorer scorer(*model);
  double expected = 0;
  uint64_t length = 0;
  for (const Json& row : KenlmRows(GetParam())) {
    scorer.BeginLine();
    for (absl::string_view word : WordsOf(row["line"].get_ref<const std::string&>())) scorer.AddWord(word);
    scorer.EndLine();
    for (const Json& word : row["words"]) expected += word[0].get<float>();
    length += row["words"].size();
  }
  TextScore score = scorer.Score();
  EXPECT_NEAR(score.log_probability, expected, 1e-9);
  EXPECT_EQ(score.length, length);
  EXPECT_NEAR(score.Perplexity(), std::pow(10, -expected / length), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Models, Kenlm, ::testing::Values("trained.arpa", "handmade.arpa"),
                         [](const auto& info) { return std::string(info.param, std::strlen(info.param) - 5); });

absl::StatusOr<NgramModel> Parse(const std::string& text) {
  auto reader = ArpaReader::OpenText(text, "m.arpa");
  return NgramModel::Load(*reader);
}

TEST(NgramModel, OfWordsAloneKnowsNoContext) {
  auto model = Parse("\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<s>\n-0.5\t</s>\n-0.25\ta\n\n\\end\\\n");
  ASSERT_TRUE(model.ok()) << model.status();
  NgramScorer scorer(*model);
  scorer.BeginLine();
  scorer.AddWord("a");
  scorer.AddWord("b");
  scorer.EndLine();
  // A model without <unk> gives kenlm's 10^-100 to a word that it does not have.
  EXPECT_DOUBLE_EQ(scorer.Score().log_probability, -0.25 - 100 - 0.5);
  EXPECT_EQ(scorer.Score().unknown, 1u);
  EXPECT_FALSE(model->Knows("b"));
}

TEST(NgramModel, ManyNgramsAreAllFound) {
  // Beyond the first allocation of tables when the size of the file is not known.
  std::string text = "\\data\\\nngram 1=50003\n\n\\1-grams:\n-9\t<unk>\n-1\t<s>\n-0.5\t</s>\n";
  for (int i = 0; i < 50000; ++i) absl::StrAppend(&text, "-", i % 8, "\tw", i, "\n");
  text += "\\end\\\n";
  size_t at = 0;
  auto feed = [&](char* out, size_t bytes_max) -> absl::StatusOr<size_t> {
    size_t bytes = text.copy(out, std::min<size_t>(bytes_max, 1000), at);
    at += bytes;
    return bytes;
  };
  auto reader = ArpaReader::Open(feed, "m.arpa", /*bytes_hint=*/1000);
  auto model = NgramModel::Load(*reader);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->count(1), 50003u);
  NgramScorer scorer(*model);
  scorer.BeginLine(/*whole=*/false);
  for (int i = 0; i < 50000; ++i) scorer.AddWord(absl::StrCat("w", i));
  TextScore score = scorer.Score();
  EXPECT_EQ(score.unknown, 0u);
  EXPECT_DOUBLE_EQ(score.log_probability, -3.5 * 50000);
  EXPECT_LT(model->memory_bytes(), 50003 * 23u * 2 + 4096);
}

TEST(TextScore, OfNothingHasNoPerplexity) { EXPECT_EQ(TextScore().Perplexity(), 0); }

}  // namespace
}  // namespace llmctl::data
