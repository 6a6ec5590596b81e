#include "worker/data/perplexity/perplexity_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "common/base/rng.h"
#include "worker/data/perplexity/line_normalizer.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTrained[] = "tests/unit/data/perplexity/trained.arpa";

std::string Normalized(absl::string_view line) {
  std::string out = "what was there before";
  NormalizeLine(line, out);
  return out;
}

// Expected values are those of cc_net's normalize() on Python 3.11.
TEST(NormalizeLine, IsCcNets) {
  EXPECT_EQ(Normalized(""), "");
  EXPECT_EQ(Normalized(" \t\u3000\u00a0 "), "");
  EXPECT_EQ(Normalized("  Hello, World 2024!\t"), "hello, world 0000!");
  EXPECT_EQ(Normalized("Crème BRÛLÉE, Ångström, naïve"), "creme brulee, angstrom, naive");
  EXPECT_EQ(Normalized("«Sí» – „Ja“ — ‘no’…"), "\"si\" - \"ja\"  -  ‘no'...");
  EXPECT_EQ(Normalized("，。、：？！（）；．～【】％《》「」〈〉━►∶´"), ",.,:?!();. ~[]%\"\"\"\"<>--:'");
  EXPECT_EQ(Normalized("１２３ ٣٤ ४५ ½ ²"), "000 00 00 ½ ²") << "decimal digits, not other numbers";
  EXPECT_EQ(Normalized("a\tb\x01" "c\x7f" "d\u0085" "e\nf"), "abcdef") << "tabs and line ends are control characters";
  EXPECT_EQ(Normalized("İstanbul ẞ ǅ"), "istanbul ß ǆ");
  EXPECT_EQ(Normalized("한국"), "\u1112\u1161\u11ab\u1100\u116e\u11a8") << "syllables fall apart into letters";
  EXPECT_EQ(Normalized("ΟΔΥΣΣΕΥΣ ΣΑΣ Σ"), "οδυσσευς σας σ") << "a last sigma has a form of its own";
  EXPECT_EQ(Normalized("ΌΧΙ２Σ."), "οχι0σ.");
  EXPECT_EQ(Normalized("が ｶﾞ Å ﬁ"), "か ｶﾞ a ﬁ") << "canonical forms only";
  EXPECT_EQ(Normalized("नमस्ते हिन्दी"), "नमसत हिनदी");
  EXPECT_EQ(Normalized("x\u302f\u302e\u0301y"), "x\u302f\u302ey");
  EXPECT_EQ(Normalized("😀 \U0001D7D8 \U00010400 \U000E0100z"), "😀 0 \U00010428 z");
}

std::vector<std::vector<std::string>> LinesOf(const ModelText& text, absl::string_view document) {
  ModelTextReader reader(text);
  std::vector<std::vector<std::string>> lines;
  std::vector<absl::string_view> words;
  reader.Start(document);
  while (reader.NextLine(words)) lines.emplace_back(words.begin(), words.end());
  return lines;
}

TEST(ModelText, SplitsLinesAndWords) {
  ModelText text({}, nullptr);
  EXPECT_THAT(LinesOf(text, "Ein Wort\n\n \t\nZwei  Wörter 12\n"),
              ElementsAre(ElementsAre("ein", "wort"), ElementsAre("zwei", "worter", "00")));
  EXPECT_THAT(LinesOf(text, ""), ElementsAre());
  ModelText raw({.normalize = false, .skip_blank_lines = false}, nullptr);
  EXPECT_THAT(LinesOf(raw, "Ein\tWort\n\nÜ"), ElementsAre(ElementsAre("Ein", "Wort"), ElementsAre(), ElementsAre("Ü")));
}

TEST(ModelText, PiecesAreWrittenInTheByteAlphabet) {
  TokenizerDefinition definition;
  for (int byte = 0; byte < 256; ++byte) definition.tokens.push_back(std::string(1, static_cast<char>(byte)));
  definition.tokens.push_back(" a");
  definition.merges = {{' ', 'a', 256}};
  definition.model_tokens = 257;
  definition.tokens.push_back("<|endoftext|>");
  definition.added = {{"<|endoftext|>", 257, true, false}};
  auto tokenizer = BpeTokenizer::Create(definition, {.added_tokens = AddedTokensInText::kPlain});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ModelText text({.unit = ModelUnit::kPieces}, tokenizer->get());
  EXPECT_THAT(LinesOf(text, "B a\n漢"), ElementsAre(ElementsAre("b", "Ġa"), ElementsAre("æ", "¼", "¢")));
}

PerplexitySettings Settings() {
  PerplexitySettings settings;
  settings.text.normalize = false;
  settings.models = {{"xx", kTrained}};
  return settings;
}

TEST(PerplexityReader, AddsUpTheLinesOfADocument) {
  auto models = PerplexityModels::Load(Settings());
  ASSERT_TRUE(models.ok()) << models.status();
  PerplexityReader reader(**models);

  PerplexityMeasure first = reader.Measure("la mi so", "xx");
  PerplexityMeasure second = reader.Measure("unbekannt", "xx");
  PerplexityMeasure both = reader.Measure("la mi so\n\nunbekannt\n", "xx");

  EXPECT_TRUE(both.scored);
  EXPECT_DOUBLE_EQ(both.score.log_probability, first.score.log_probability + second.score.log_probability);
  EXPECT_EQ(both.score.length, 4u + 2u);
  EXPECT_EQ(both.score.unknown, first.score.unknown + second.score.unknown);
  EXPECT_DOUBLE_EQ(both.perplexity, std::pow(10, -both.score.log_probability / 6));
  EXPECT_FALSE(reader.Measure("la", "yy").scored) << "no model for this language";
  EXPECT_FALSE(reader.Measure("\n \n", "xx").scored) << "no line";
}

TEST(PerplexityReader, ModelOfNoLanguageServesAll) {
  PerplexitySettings settings = Settings();
  settings.models[""] = "tests/unit/data/perplexity/handmade.arpa";
  auto models = PerplexityModels::Load(settings);
  ASSERT_TRUE(models.ok()) << models.status();
  PerplexityReader reader(**models);
  EXPECT_NE(reader.Measure("la mi", "xx").perplexity, reader.Measure("la mi", "yy").perplexity);
  EXPECT_EQ(reader.Measure("la mi", "zz").perplexity, reader.Measure("la mi", "yy").perplexity);
  EXPECT_GT((*models)->memory_bytes(), 0u);
}

PerplexityMeasure MeasureOf(double perplexity) { return {.scored = true, .score = {}, .perplexity = perplexity}; }

TEST(PerplexitySketch, PercentilesAreExactButForTheBin) {
  SeededRng rng(1);
  PerplexitySketch sketch;
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(std::exp(rng.Uniform() * 12));
    sketch.Add("en", MeasureOf(values.back()));
  }
  sketch.Add("en", PerplexityMeasure());
  std::sort(values.begin(), values.end());
  EXPECT_EQ(sketch.count("en"), 5000u);
  for (double percentile : {1.0, 30.0, 60.0, 99.0}) {
    const double exact = values[static_cast<size_t>(std::ceil(percentile / 100 * 5000)) - 1];
    EXPECT_GT(sketch.Percentile("en", percentile), exact);
    EXPECT_LE(sketch.Percentile("en", percentile), exact * 1.0028);
  }
  EXPECT_EQ(sketch.Percentile("de", 30), 0);
}

TEST(PerplexitySketch, PartsAddUpInAnyOrder) {
  SeededRng rng(2);
  PerplexitySketch whole, parts[3];
  for (int i = 0; i < 3000; ++i) {
    PerplexityMeasure measure = MeasureOf(1 + rng.Uniform() * 5000);
    const char* language = i % 4 == 0 ? "de" : "en";
    whole.Add(language, measure);
    parts[rng.Below(3)].Add(language, measure);
  }
  PerplexitySketch merged;
  for (int i : {2, 0, 1}) {
    auto parsed = PerplexitySketch::Parse(parts[i].Serialize());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    merged.Merge(*parsed);
  }
  EXPECT_EQ(merged.Serialize(), whole.Serialize());
  EXPECT_THAT(merged.languages(), ElementsAre("de", "en"));
  std::map<std::string, PerplexityCutoffs> cutoffs = merged.Cutoffs(PerplexitySettings());
  EXPECT_EQ(cutoffs.size(), 3u);
  EXPECT_EQ(cutoffs["en"].head, whole.Percentile("en", 30));
  EXPECT_EQ(cutoffs["en"].middle, whole.Percentile("en", 60));
  EXPECT_NEAR(cutoffs[""].head, 1500, 150);
}

TEST(PerplexitySketch, ExtremesHaveBins) {
  PerplexitySketch sketch;
  for (double value : {0.5, 1.0, 1e300, std::numeric_limits<double>::infinity()}) sketch.Add("", MeasureOf(value));
  EXPECT_EQ(sketch.count(""), 4u);
  EXPECT_NEAR(sketch.Percentile("", 50), 1, 0.01);
  EXPECT_EQ(sketch.Percentile("", 99), std::exp2(32));
}

TEST(PerplexitySketch, OtherTextsAreRefused) {
  PerplexitySketch sketch;
  sketch.Add("en", MeasureOf(100));
  const std::string text = sketch.Serialize();
  for (const std::string& bad : {std::string(), std::string("x"), text.substr(0, text.size() - 4), text + "x",
                                 absl::StrCat("perplexity-sketch 1 256\n3 4\nend\n"),
                                 absl::StrCat("perplexity-sketch 1 256\nlanguage en\n9000 1\nend\n")}) {
    EXPECT_EQ(PerplexitySketch::Parse(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(JudgePerplexity, BucketsAreCcNets) {
  PerplexityCutoffs cutoffs = {100, 200};
  PerplexitySettings settings = Settings();
  auto bucket = [&](double perplexity) {
    return BucketName(JudgePerplexity(MeasureOf(perplexity), &cutoffs, settings).bucket);
  };
  EXPECT_EQ(bucket(99.9), "head");
  EXPECT_EQ(bucket(100), "middle");
  EXPECT_EQ(bucket(200), "tail");
  EXPECT_EQ(BucketName(JudgePerplexity({}, &cutoffs, settings).bucket), "all");
  EXPECT_EQ(BucketName(JudgePerplexity(MeasureOf(5), nullptr, settings).bucket), "all");
  EXPECT_TRUE(JudgePerplexity(MeasureOf(1e9), &cutoffs, settings).keep()) << "labels only";
}

TEST(JudgePerplexity, DropsWithReasonNumberAndThreshold) {
  PerplexityCutoffs cutoffs = {100, 200};
  PerplexitySettings settings = Settings();
  settings.perplexity_min = 10;
  settings.perplexity_max = 1000;
  settings.keep_buckets = {PerplexityBucket::kHead, PerplexityBucket::kMiddle};
  auto expect = [&](double perplexity, absl::string_view reason, double threshold) {
    PerplexityVerdict verdict = JudgePerplexity(MeasureOf(perplexity), &cutoffs, settings);
    EXPECT_EQ(ReasonName(verdict.reason), reason) << perplexity;
    EXPECT_EQ(verdict.keep(), reason.empty());
    EXPECT_EQ(verdict.measured, perplexity);
    EXPECT_EQ(verdict.threshold, threshold);
  };
  expect(10, "", 0);
  expect(9.9, "perplexity_too_low", 10);
  expect(1000.1, "perplexity_too_high", 1000);
  expect(200, "perplexity_bucket", 200);
  expect(199, "", 0);
  EXPECT_TRUE(JudgePerplexity({}, &cutoffs, settings).keep()) << "not scored";
  settings.keep_buckets = {PerplexityBucket::kMiddle};
  expect(50, "perplexity_bucket", 100);
  settings.keep_buckets = {PerplexityBucket::kTail};
  expect(110, "perplexity_bucket", 100);
  expect(190, "perplexity_bucket", 200);
}

TEST(FindCutoffs, LanguageFirstThenTheRest) {
  std::map<std::string, PerplexityCutoffs> cutoffs = {{"en", {1, 2}}, {"", {3, 4}}};
  EXPECT_EQ(FindCutoffs(cutoffs, "en")->head, 1);
  EXPECT_EQ(FindCutoffs(cutoffs, "de")->head, 3);
  EXPECT_EQ(FindCutoffs({}, "de"), nullptr);
}

TEST(PerplexitySettings, AllFaultsAreInOneMessage) {
  PerplexitySettings settings;
  settings.text.unit = ModelUnit::kPieces;
  settings.head_percentile = 70;
  settings.cutoffs["en"] = {5, 4};
  settings.keep_buckets.emplace();
  settings.perplexity_min = 5;
  settings.perplexity_max = 4;
  std::string message(settings.Validate().message());
  for (const char* fault : {"models: none is given", "pieces need a tokenizer.json", "head_percentile, 70, is above",
                            "cutoffs.\"en\": head 5, middle 4", "keep_buckets: it lists none",
                            "perplexity_min, 5, is above perplexity_max, 4"}) {
    EXPECT_THAT(message, HasSubstr(fault));
  }
  EXPECT_TRUE(Settings().Validate().ok());
}

}  // namespace
}  // namespace llmctl::data
