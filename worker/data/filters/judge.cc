#include "worker/data/filters/judge.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

struct RuleNames {
  absl::string_view filter;
  absl::string_view reason;
};

// By FilterRule.
constexpr RuleNames kNames[] = {
    {"", ""},
    {"gopher_repetition", "empty"},
    {"gopher_repetition", "dup_para_frac"},
    {"gopher_repetition", "dup_para_char_frac"},
    {"gopher_repetition", "dup_line_frac"},
    {"gopher_repetition", "dup_line_char_frac"},
    {"gopher_repetition", "top_2_gram"},
    {"gopher_repetition", "top_3_gram"},
    {"gopher_repetition", "top_4_gram"},
    {"gopher_repetition", "duplicated_5_n_grams"},
    {"gopher_repetition", "duplicated_6_n_grams"},
    {"gopher_repetition", "duplicated_7_n_grams"},
    {"gopher_repetition", "duplicated_8_n_grams"},
    {"gopher_repetition", "duplicated_9_n_grams"},
    {"gopher_repetition", "duplicated_10_n_grams"},
    {"gopher_quality", "gopher_short_doc"},
    {"gopher_quality", "gopher_long_doc"},
    {"gopher_quality", "gopher_below_avg_threshold"},
    {"gopher_quality", "gopher_above_avg_threshold"},
    {"gopher_quality", "gopher_too_many_hashes"},
    {"gopher_quality", "gopher_too_many_ellipsis"},
    {"gopher_quality", "gopher_too_many_bullets"},
    {"gopher_quality", "gopher_too_many_end_ellipsis"},
    {"gopher_quality", "gopher_below_alpha_threshold"},
    {"gopher_quality", "gopher_enough_stop_words"},
    {"c4", "lorem_ipsum"},
    {"c4", "curly_bracket"},
    {"c4", "too_few_sentences"},
    {"fineweb", "empty"},
    {"fineweb", "line_punct_ratio"},
    {"fineweb", "short_line_ratio"},
    {"fineweb", "char_dup_ratio"},
    {"fineweb", "list_ratio"},
    {"c4_paragraph", "too_few_paragraphs"},
};

// Collects the first rule that drops.
class Judging {
 public:
  // A ratio of which nothing is measured is 0: a text without lines has no bullet lines.
  static double Ratio(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  void AtMost(FilterRule rule, double measured, std::optional<double> threshold) {
    if (verdict_.keep() && threshold.has_value() && measured > *threshold) verdict_ = {rule, measured, *threshold};
  }
  void AtLeast(FilterRule rule, double measured, std::optional<double> threshold) {
    if (verdict_.keep() && threshold.has_value() && measured < *threshold) verdict_ = {rule, measured, *threshold};
  }
  void Also(const Verdict& verdict) {
    if (verdict_.keep()) verdict_ = verdict;
  }

  const Verdict& verdict() const { return verdict_; }

 private:
  Verdict verdict_;
};

FilterRule RuleOfGrams(int n) {
  return static_cast<FilterRule>(static_cast<int>(FilterRule::kTop2Gram) + n - GopherRepetitionStats::kTopGramMin);
}

absl::Status NotMeasured(absl::string_view filter) {
  return absl::FailedPreconditionError(
      absl::StrCat("judge kept numbers: there are none of ", filter, ", which the settings ask for; measure again"));
}

}  // namespace

absl::string_view FilterName(FilterRule rule) { return kNames[static_cast<int>(rule)].filter; }
absl::string_view ReasonName(FilterRule rule) { return kNames[static_cast<int>(rule)].reason; }

Verdict JudgePieces(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings) {
  Judging judging;
  if (stats.characters == 0) return {FilterRule::kRepetitionEmpty, 0, 1};
  judging.AtMost(FilterRule::kRepeatedParagraphs, Judging::Ratio(stats.repeated_paragraphs, stats.paragraphs),
                 settings.paragraph_fraction_max);
  judging.AtMost(FilterRule::kRepeatedParagraphCharacters,
                 Judging::Ratio(stats.repeated_paragraph_characters, stats.characters),
                 settings.paragraph_character_fraction_max);
  judging.AtMost(FilterRule::kRepeatedLines, Judging::Ratio(stats.repeated_lines, stats.lines),
                 settings.line_fraction_max);
  judging.AtMost(FilterRule::kRepeatedLineCharacters, Judging::Ratio(stats.repeated_line_characters, stats.characters),
                 settings.line_character_fraction_max);
  return judging.verdict();
}

Verdict JudgeGrams(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, int n) {
  Judging judging;
  if (n < GopherRepetitionStats::kRepeatedGramMin) {
    int i = n - GopherRepetitionStats::kTopGramMin;
    judging.AtMost(RuleOfGrams(n), Judging::Ratio(stats.top_gram_characters[i], stats.characters),
                   settings.top_gram_fraction_max[i]);
  } else {
    int i = n - GopherRepetitionStats::kRepeatedGramMin;
    judging.AtMost(RuleOfGrams(n), Judging::Ratio(stats.repeated_gram_characters[i], stats.characters),
                   settings.repeated_gram_fraction_max[i]);
  }
  return judging.verdict();
}

Verdict Judge(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings) {
  Judging judging;
  judging.Also(JudgePieces(stats, settings));
  for (int n = 2; n <= 10; ++n) judging.Also(JudgeGrams(stats, settings, n));
  return judging.verdict();
}

Verdict Judge(const GopherQualityStats& stats, const GopherQualitySettings& settings) {
  Judging judging;
  judging.AtLeast(FilterRule::kFewWords, stats.plain_words, settings.words_min);
  judging.AtMost(FilterRule::kManyWords, stats.plain_words, settings.words_max);
  if (stats.plain_words > 0) {  // the mean of nothing is neither short nor long
    double mean = Judging::Ratio(stats.plain_word_characters, stats.plain_words);
    judging.AtLeast(FilterRule::kShortWords, mean, settings.mean_word_characters_min);
    judging.AtMost(FilterRule::kLongWords, mean, settings.mean_word_characters_max);
  }
  judging.AtMost(FilterRule::kHashes, Judging::Ratio(stats.hashes, stats.words), settings.hash_ratio_max);
  judging.AtMost(FilterRule::kEllipses, Judging::Ratio(stats.ellipses, stats.words), settings.ellipsis_ratio_max);
  judging.AtMost(FilterRule::kBulletLines, Judging::Ratio(stats.bullet_lines, stats.lines),
                 settings.bullet_line_fraction_max);
  judging.AtMost(FilterRule::kEllipsisLines, Judging::Ratio(stats.ellipsis_lines, stats.lines),
                 settings.ellipsis_line_fraction_max);
  judging.AtLeast(FilterRule::kFewLetterWords, Judging::Ratio(stats.letter_words, stats.words),
                  settings.letter_word_fraction_min);
  judging.AtLeast(FilterRule::kFewStopWords, stats.stop_words, settings.stop_words_min);
  return judging.verdict();
}

Verdict JudgeLines(const C4Stats& stats, const C4Settings& settings) {
  bool lorem = settings.refuse_lorem_ipsum && stats.lorem_ipsum_line > 0;
  bool curly = settings.refuse_curly_bracket && stats.curly_bracket_line > 0;
  // The line that comes first decides; on one line lorem ipsum is looked for first.
  if (lorem && (!curly || stats.lorem_ipsum_line <= stats.curly_bracket_line)) {
    return {FilterRule::kLoremIpsum, static_cast<double>(stats.lorem_ipsum_line), 0};
  }
  if (curly) return {FilterRule::kCurlyBracket, static_cast<double>(stats.curly_bracket_line), 0};
  return {};
}

Verdict Judge(const C4Stats& stats, const C4Settings& settings) {
  Judging judging;
  judging.Also(JudgeLines(stats, settings));
  judging.AtLeast(FilterRule::kFewSentences, stats.sentences, settings.sentences_min);
  return judging.verdict();
}

Verdict JudgeLines(const FineWebStats& stats, const FineWebSettings& settings) {
  if (stats.lines == 0) return {FilterRule::kFineWebEmpty, 0, 1};
  Judging judging;
  if (stats.terminal_lines > 0 || !settings.keep_without_terminal_lines) {
    judging.AtLeast(FilterRule::kFewTerminalLines, Judging::Ratio(stats.terminal_lines, stats.lines),
                    settings.terminal_line_fraction_min);
  }
  judging.AtMost(FilterRule::kShortLines, Judging::Ratio(stats.short_lines, stats.lines),
                 settings.short_line_fraction_max);
  judging.AtMost(FilterRule::kFineWebRepeatedLines, Judging::Ratio(stats.repeated_line_characters, stats.characters),
                 settings.repeated_line_character_fraction_max);
  return judging.verdict();
}

Verdict Judge(const FineWebStats& stats, const FineWebSettings& settings) {
  Judging judging;
  judging.Also(JudgeLines(stats, settings));
  judging.AtMost(FilterRule::kLineEndsPerWord, Judging::Ratio(stats.line_ends, stats.words),
                 settings.line_ends_per_word_max);
  return judging.verdict();
}

Verdict Judge(const ParagraphStats& stats, const ParagraphSettings& settings) {
  if (stats.paragraphs < settings.paragraphs_min) {
    return {FilterRule::kFewParagraphs, static_cast<double>(stats.paragraphs),
            static_cast<double>(settings.paragraphs_min)};
  }
  Judging judging;
  judging.AtLeast(FilterRule::kFewParagraphs, stats.least_long, settings.paragraph_characters_min);
  return judging.verdict();
}

absl::StatusOr<Verdict> Judge(const FilterStats& stats, const FilterSettings& settings) {
  Judging judging;
  if (settings.gopher_repetition.has_value()) {
    if (!stats.gopher_repetition.has_value()) return NotMeasured("gopher_repetition");
    judging.Also(Judge(*stats.gopher_repetition, *settings.gopher_repetition));
  }
  if (settings.gopher_quality.has_value()) {
    if (!stats.gopher_quality.has_value()) return NotMeasured("gopher_quality");
    judging.Also(Judge(*stats.gopher_quality, *settings.gopher_quality));
  }
  if (settings.c4.has_value()) {
    if (!stats.c4.has_value()) return NotMeasured("c4");
    judging.Also(Judge(*stats.c4, *settings.c4));
  }
  if (settings.fineweb.has_value()) {
    if (!stats.fineweb.has_value()) return NotMeasured("fineweb");
    judging.Also(Judge(*stats.fineweb, *settings.fineweb));
  }
  if (settings.paragraphs.has_value()) {
    if (!stats.paragraphs.has_value()) return NotMeasured("c4_paragraph");
    judging.Also(Judge(*stats.paragraphs, *settings.paragraphs));
  }
  return judging.verdict();
}

}  // namespace llmctl::data
