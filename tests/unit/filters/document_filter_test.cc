#include "worker/data/filters/document_filter.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

// Eight lines of different prose that every filter keeps.
std::string GoodText() {
  std::string text;
  for (const char* name : {"Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Hugo"}) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", name, " walked home with the letter that ", name,
                    "'s sister had sent to be read.");
  }
  return text;
}

struct Filter {
  explicit Filter(FilterSettings settings = Settings()) : rules(std::move(settings)), filter(rules) {}
  static FilterSettings Settings() {
    FilterSettings settings = FilterSettings::FineWeb();
    // The lines are alike on purpose.
    settings.gopher_repetition->top_gram_fraction_max = {};
    settings.gopher_repetition->repeated_gram_fraction_max = {};
    return settings;
  }

  Verdict Run(std::string text, absl::string_view language = "en") {
    Verdict verdict = filter.Run(text, language);
    after = text;
    return verdict;
  }

  FilterRules rules;
  DocumentFilter filter;
  std::string after;
};

TEST(DocumentFilter, KeepsGoodTextAsItIs) {
  Filter filter;

  EXPECT_TRUE(filter.Run(GoodText()).keep());
  EXPECT_EQ(filter.after, GoodText());
}

TEST(DocumentFilter, EmptyAndBlankTextsAreDropped) {
  Filter filter;

  EXPECT_EQ(filter.Run(GoodText()), Verdict());
  EXPECT_EQ(filter.Run("").rule, FilterRule::kRepetitionEmpty);
  EXPECT_EQ(filter.Run(" \n\n \t").rule, FilterRule::kFewWords);

  FilterSettings only_fineweb;
  only_fineweb.fineweb.emplace();
  EXPECT_EQ(Filter(only_fineweb).Run("").rule, FilterRule::kFineWebEmpty);
  EXPECT_EQ(Filter(only_fineweb).Run("\n \n").rule, FilterRule::kFineWebEmpty);
}

TEST(DocumentFilter, EmptyTextCanBeMeasured) {
  Filter filter;
  std::string rewritten = "before";
  filter.filter.Measure(GoodText(), "en", rewritten);

  FilterStats stats = filter.filter.Measure(absl::string_view(), "en", rewritten);

  EXPECT_EQ(rewritten, "");
  EXPECT_EQ(stats.gopher_quality, GopherQualityStats());
  EXPECT_EQ(stats.c4, C4Stats());
  EXPECT_EQ(stats.fineweb, FineWebStats());
  EXPECT_EQ(stats.gopher_repetition, (GopherRepetitionStats{.paragraphs = 1, .lines = 1}));
}

TEST(DocumentFilter, C4RewritesWhatIsKept) {
  Filter filter;
  std::string text = "  [1] Short\n" + GoodText() +
                     "[12][edit]\n\nPlease turn on JavaScript to see this.\r\nThis site USES COOKIES of its own.";

  EXPECT_TRUE(filter.Run(text).keep());
  EXPECT_EQ(filter.after, GoodText());

  std::string dropped = GoodText() + "\nfunction f() { }\n";
  EXPECT_EQ(filter.Run(dropped), (Verdict{FilterRule::kCurlyBracket, 9, 0}));
  EXPECT_EQ(filter.after, dropped);
}

TEST(DocumentFilter, C4CountsWhatItDoesToLines) {
  FilterSettings settings;
  settings.c4.emplace();
  Filter filter(settings);
  std::string text = "Kept by all the rules. Twice.\nno mark\nOne two.\nSee javascript here now.\n" +
                     std::string(1001, 'x') + " is long.\nRead our Privacy Policy, please.\nLorem Ipsum {here} now!";
  std::string rewritten;

  FilterStats stats = filter.filter.Measure(text, "en", rewritten);

  EXPECT_EQ(stats.c4, (C4Stats{.lines = 7, .long_word_lines = 1, .unterminated_lines = 1, .short_lines = 1,
                               .javascript_lines = 1, .policy_lines = 1, .kept_lines = 2, .sentences = 3,
                               .lorem_ipsum_line = 7, .curly_bracket_line = 7}));
  EXPECT_EQ(rewritten, "Kept by all the rules. Twice.\nLorem Ipsum {here} now!");
  EXPECT_EQ(filter.Run(text).rule, FilterRule::kLoremIpsum);
}

TEST(DocumentFilter, AWordOfExactlyTheLimitIsNotTooLong) {
  FilterSettings settings;
  settings.c4.emplace().sentences_min.reset();
  Filter filter(settings);
  std::string text = std::string(999, 'x') + "\u00e9 and more.";  // 1000 characters, 1001 bytes

  EXPECT_TRUE(filter.Run(text).keep());
  EXPECT_EQ(filter.after, text);
}

TEST(DocumentFilter, StopWordsAreThoseOfTheLanguage) {
  FilterSettings settings;
  GopherQualitySettings& quality = settings.gopher_quality.emplace();
  quality.words_min.reset();
  quality.stop_words["de"] = {"und", "der", "die", "with"};
  Filter filter(settings);
  std::string german = "Hund und Katze sind der Stolz des Hauses gewesen";

  EXPECT_TRUE(filter.Run(german, "de").keep());
  EXPECT_EQ(filter.Run(german, "en"), (Verdict{FilterRule::kFewStopWords, 0, 2}));
  EXPECT_EQ(filter.Run(german, "xx"), (Verdict{FilterRule::kFewStopWords, 0, 2}));
  EXPECT_EQ(filter.Run("The cat with the dog with", "de"), (Verdict{FilterRule::kFewStopWords, 1, 2}));
}

TEST(DocumentFilter, TheDefaultTriesWordCountsBeforeNGrams) {
  std::string text = "again and again and again and again and again";
  FilterSettings settings;
  settings.gopher_repetition.emplace();
  settings.gopher_quality.emplace();

  EXPECT_EQ(Filter(settings).Run(text).rule, FilterRule::kFewWords);
  settings.mode = FilterMode::kDatatrove;
  EXPECT_EQ(Filter(settings).Run(text).rule, FilterRule::kTop2Gram);
}

TEST(DocumentFilter, NGramsOfTheSameLettersAreEqualOnlyToDatatrove) {
  FilterSettings settings;
  settings.gopher_repetition.emplace().top_gram_fraction_max = {};
  settings.gopher_repetition->repeated_gram_fraction_max = {0.4, {}, {}, {}, {}, {}};
  std::string text = "ab c d e f a bc d e f";

  EXPECT_TRUE(Filter(settings).Run(text).keep());
  settings.mode = FilterMode::kDatatrove;
  EXPECT_EQ(Filter(settings).Run(text).keep(), true);  // 6 of 21 characters
  settings.gopher_repetition->repeated_gram_fraction_max[0] = 0.2;
  EXPECT_EQ(Filter(settings).Run(text), (Verdict{FilterRule::kRepeated5Grams, 6.0 / 21.0, 0.2}));
}

TEST(DocumentFilter, FineWebLooksAtWhatC4Left) {
  FilterSettings settings;
  settings.c4.emplace().sentences_min.reset();
  settings.fineweb.emplace();
  settings.fineweb->line_ends_per_word_max = 0.2;
  Filter filter(settings);
  // Alone these many short words would outweigh the line ends.
  std::string text = GoodText() + "\nuse cookies" + std::string(400, 'x') + " a b c d e f g h i j k l.";
  std::string lines = "One little line is here with no end to it.\nTwo of them are hardly more than one is, I say.";

  EXPECT_TRUE(filter.Run(text).keep());
  EXPECT_TRUE(filter.Run(lines).keep());
  settings.fineweb->line_ends_per_word_max = 0.01;
  EXPECT_EQ(Filter(settings).Run(lines).rule, FilterRule::kLineEndsPerWord);
}

TEST(DocumentFilter, OneObjectServesManyDocuments) {
  Filter used;
  for (int i = 0; i < 50; ++i) used.Run(GoodText() + std::to_string(i));

  for (const std::string& text : {GoodText(), std::string("x"), GoodText() + "\nlorem ipsum dolor"}) {
    EXPECT_EQ(used.Run(text), Filter().Run(text));
  }
}

}  // namespace
}  // namespace llmctl::data
