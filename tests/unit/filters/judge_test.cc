#include "worker/data/filters/judge.h"

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

// A document that every filter keeps.
FilterStats GoodStats() {
  FilterStats stats;
  stats.gopher_repetition = {.characters = 1000, .paragraphs = 10, .lines = 20};
  stats.gopher_quality = {.words = 100, .plain_words = 90, .plain_word_characters = 450, .letter_words = 90,
                          .stop_words = 3, .lines = 10};
  stats.c4 = {.lines = 10, .kept_lines = 10, .sentences = 12};
  stats.fineweb = {.lines = 10, .terminal_lines = 9, .short_lines = 1, .characters = 900, .line_ends = 9, .words = 100};
  stats.paragraphs = {.paragraphs = 10, .least_long = 300};
  return stats;
}

FilterSettings AllFilters() {
  FilterSettings settings = FilterSettings::FineWeb();
  settings.paragraphs.emplace();
  return settings;
}

Verdict Judged(const FilterStats& stats, const FilterSettings& settings = AllFilters()) {
  absl::StatusOr<Verdict> verdict = Judge(stats, settings);
  EXPECT_TRUE(verdict.ok()) << verdict.status().message();
  return verdict.value_or(Verdict());
}

TEST(Judge, GoodNumbersKeepADocument) { EXPECT_TRUE(Judged(GoodStats()).keep()); }

TEST(Judge, AValueEqualToItsThresholdIsKept) {
  FilterStats stats = GoodStats();
  stats.gopher_repetition->repeated_lines = 6;  // of 20: 0.3
  EXPECT_TRUE(Judged(stats).keep());

  stats.gopher_repetition->repeated_lines = 7;
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kRepeatedLines, 0.35, 0.3}));

  stats = GoodStats();
  stats.gopher_quality->plain_words = 50;
  EXPECT_TRUE(Judged(stats).keep());
  stats.gopher_quality->plain_words = 49;
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kFewWords, 49, 50}));
}

TEST(Judge, NumbersOfNothingAreZeroes) {
  FilterSettings settings = AllFilters();
  settings.gopher_quality->words_min.reset();
  settings.gopher_quality->letter_word_fraction_min.reset();
  settings.gopher_quality->stop_words_min.reset();
  FilterStats stats = GoodStats();
  stats.gopher_quality = GopherQualityStats();

  EXPECT_TRUE(Judged(stats, settings).keep());

  stats.fineweb = FineWebStats();
  EXPECT_EQ(Judged(stats, settings).rule, FilterRule::kFineWebEmpty);
  stats.gopher_repetition = GopherRepetitionStats();
  EXPECT_EQ(Judged(stats, settings).rule, FilterRule::kRepetitionEmpty);
}

TEST(Judge, TheFirstRuleInOrderGivesTheReason) {
  FilterStats stats = GoodStats();
  stats.gopher_quality->hashes = 50;
  stats.c4->sentences = 0;
  EXPECT_EQ(Judged(stats).rule, FilterRule::kHashes);

  stats.gopher_repetition->repeated_gram_characters[5] = 500;
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kRepeated10Grams, 0.5, 0.1}));
  stats.gopher_repetition->top_gram_characters[0] = 300;
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kTop2Gram, 0.3, 0.2}));
}

TEST(Judge, OfLoremIpsumAndCurlyBracketTheFirstLineDecides) {
  FilterStats stats = GoodStats();
  stats.c4->lorem_ipsum_line = 4;
  stats.c4->curly_bracket_line = 3;
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kCurlyBracket, 3, 0}));

  stats.c4->curly_bracket_line = 4;
  EXPECT_EQ(Judged(stats).rule, FilterRule::kLoremIpsum);

  FilterSettings settings = AllFilters();
  settings.c4->refuse_lorem_ipsum = false;
  EXPECT_EQ(Judged(stats, settings).rule, FilterRule::kCurlyBracket);
  settings.c4->refuse_curly_bracket = false;
  EXPECT_TRUE(Judged(stats, settings).keep());
}

TEST(Judge, AnAbsentThresholdSwitchesItsRuleOff) {
  FilterStats stats = GoodStats();
  stats.fineweb->line_ends = 100;
  FilterSettings settings = AllFilters();
  EXPECT_EQ(Judged(stats, settings), (Verdict{FilterRule::kLineEndsPerWord, 1, 0.3}));

  settings.fineweb->line_ends_per_word_max.reset();
  EXPECT_TRUE(Judged(stats, settings).keep());
}

TEST(Judge, TextWithoutTerminalMarksMayBeKept) {
  FilterStats stats = GoodStats();
  stats.fineweb->terminal_lines = 0;
  EXPECT_EQ(Judged(stats).rule, FilterRule::kFewTerminalLines);

  FilterSettings settings = AllFilters();
  settings.fineweb->keep_without_terminal_lines = true;
  EXPECT_TRUE(Judged(stats, settings).keep());
}

TEST(Judge, TooFewParagraphsOrTooShort) {
  FilterStats stats = GoodStats();
  stats.paragraphs = ParagraphStats{2, 0};
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kFewParagraphs, 2, 3}));
  stats.paragraphs = ParagraphStats{3, 199};
  EXPECT_EQ(Judged(stats), (Verdict{FilterRule::kFewParagraphs, 199, 200}));
}

TEST(Judge, RefusesNumbersThatWereNotTaken) {
  FilterStats stats = GoodStats();
  stats.c4.reset();

  absl::StatusOr<Verdict> verdict = Judge(stats, AllFilters());

  EXPECT_EQ(verdict.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(verdict.status().message().find("c4"), absl::string_view::npos);
}

TEST(Judge, EveryRuleHasANameOfItsOwn) {
  std::set<std::pair<std::string, std::string>> names;
  for (int i = 1; i <= static_cast<int>(FilterRule::kFewParagraphs); ++i) {
    FilterRule rule = static_cast<FilterRule>(i);
    EXPECT_FALSE(ReasonName(rule).empty()) << i;
    names.emplace(FilterName(rule), ReasonName(rule));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(FilterRule::kFewParagraphs));
}

}  // namespace
}  // namespace llmctl::data
