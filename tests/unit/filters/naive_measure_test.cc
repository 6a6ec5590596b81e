// Random texts, measured by the filters and by naive_measure.cc.
#include "tests/unit/filters/naive_measure.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "worker/data/filters/document_filter.h"

namespace llmctl::data {
namespace {

// Few words, so that n-grams come again; of one letter, so that "a bc" and "ab c" meet; all ends of lines.
std::string RandomText(SeededRng& rng) {
  static const char* const kWords[] = {"a", "b", "ab", "ba", "abc", "the", "of", "with", "zuqui", "x1", "#",
                                       "-", "...", "\u2026", "\u2022", "\u00e9\u4e2d", "don't", "end."};
  static const char* const kSeparators[] = {" ", " ", " ", " ", " ", " ", "  ", "\n", "\n\n", "\n\n\n", "\r\n", "\t",
                                            "\u2028", "\u3000", " .\n"};
  uint64_t vocabulary = 2 + rng.Below(std::size(kWords) - 1);
  std::string text;
  for (uint64_t i = rng.Below(80); i > 0; --i) {
    text += kWords[rng.Below(vocabulary)];
    text += kSeparators[rng.Below(std::size(kSeparators))];
  }
  return text;
}

FilterSettings SettingsWithoutC4(FilterMode mode) {
  FilterSettings settings = FilterSettings::FineWeb();
  settings.mode = mode;
  settings.c4.reset();
  return settings;
}

void ExpectNaiveNumbers(FilterMode mode, uint64_t seed) {
  SeededRng rng(seed);
  FilterRules rules(SettingsWithoutC4(mode));
  DocumentFilter filter(rules);
  WordReader reader(rules.splitter(), {});
  for (int i = 0; i < 120; ++i) {
    std::string text = RandomText(rng);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", text ", i, ": ", text));
    std::vector<uint32_t> ids;
    std::vector<std::string> words;
    reader.Begin();
    reader.ReadWords(text, ids);
    for (uint32_t id : ids) words.emplace_back(reader.word(id).text);
    std::string rewritten;

    FilterStats stats = filter.Measure(text, "en", rewritten);

    EXPECT_EQ(stats.gopher_repetition, NaiveRepetition(text, words, mode));
    EXPECT_EQ(stats.gopher_quality, NaiveQuality(text, words));
    EXPECT_EQ(stats.fineweb, NaiveFineWeb(text, words));
    std::string run = text;
    absl::StatusOr<Verdict> verdict = Judge(stats, rules.settings());
    ASSERT_TRUE(verdict.ok());
    Verdict lazy = filter.Run(run, "en");
    EXPECT_EQ(lazy.keep(), verdict->keep());
    if (mode == FilterMode::kDatatrove) {
      EXPECT_EQ(lazy, *verdict);
    }
  }
}

TEST(Measure, GivesTheNumbersOfTheNaiveCode) { ExpectNaiveNumbers(FilterMode::kDefault, 11); }

TEST(Measure, GivesThoseOfDatatrovesNGramsInItsMode) { ExpectNaiveNumbers(FilterMode::kDatatrove, 12); }

}  // namespace
}  // namespace llmctl::data
