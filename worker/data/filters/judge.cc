#include "worker/data/filters/judge.h"

#include <optional>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"

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

// Collects the first rule that drops, and all rules for who asks for them.
class Judging {
 public:
  explicit Judging(std::vector<RuleResult>* all = nullptr) : all_(all) {}

  // A ratio of which nothing is measured is 0: a text without lines has no bullet lines.
  static double Ratio(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  void AtMost(FilterRule rule, double measured, std::optional<double> threshold) {
    if (threshold.has_value()) Add({rule, measured, *threshold}, measured > *threshold, "at most");
  }
  void AtLeast(FilterRule rule, double measured, std::optional<double> threshold) {
    if (threshold.has_value()) Add({rule, measured, *threshold}, measured < *threshold, "at least");
  }
  // Something that must not be there at all; `where` is the line it was seen in, 0 if it was not.
  void Absent(FilterRule rule, int64_t where, bool drops) {
    Add({rule, static_cast<double>(where), 0}, drops, "none");
  }

  const Verdict& verdict() const { return verdict_; }

 private:
  void Add(const Verdict& verdict, bool drops, absl::string_view expected) {
    if (drops && verdict_.keep()) verdict_ = verdict;
    if (all_ != nullptr) all_->push_back({verdict, expected, drops});
  }

  std::vector<RuleResult>* all_;
  Verdict verdict_;
};

FilterRule RuleOfGrams(int n) {
  return static_cast<FilterRule>(static_cast<int>(FilterRule::kTop2Gram) + n - GopherRepetitionStats::kTopGramMin);
}

void JudgePieces(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, Judging& judging) {
  // Nothing else can be said of an empty text.
  if (stats.characters == 0) return judging.AtLeast(FilterRule::kRepetitionEmpty, 0, 1);
  judging.AtMost(FilterRule::kRepeatedParagraphs, Judging::Ratio(stats.repeated_paragraphs, stats.paragraphs),
                 settings.paragraph_fraction_max);
  judging.AtMost(FilterRule::kRepeatedParagraphCharacters,
                 Judging::Ratio(stats.repeated_paragraph_characters, stats.characters),
                 settings.paragraph_character_fraction_max);
  judging.AtMost(FilterRule::kRepeatedLines, Judging::Ratio(stats.repeated_lines, stats.lines),
                 settings.line_fraction_max);
  judging.AtMost(FilterRule::kRepeatedLineCharacters, Judging::Ratio(stats.repeated_line_characters, stats.characters),
                 settings.line_character_fraction_max);
}

void JudgeGrams(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, int n,
                Judging& judging) {
  bool top = n < GopherRepetitionStats::kRepeatedGramMin;
  int i = n - (top ? GopherRepetitionStats::kTopGramMin : GopherRepetitionStats::kRepeatedGramMin);
  judging.AtMost(RuleOfGrams(n),
                 Judging::Ratio(top ? stats.top_gram_characters[i] : stats.repeated_gram_characters[i],
                                stats.characters),
                 top ? settings.top_gram_fraction_max[i] : settings.repeated_gram_fraction_max[i]);
}

void JudgeAll(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, Judging& judging) {
  JudgePieces(stats, settings, judging);
  for (int n = 2; n <= 10; ++n) JudgeGrams(stats, settings, n, judging);
}

void JudgeAll(const GopherQualityStats& stats, const GopherQualitySettings& settings, Judging& judging) {
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
}

void JudgeLines(const C4Stats& stats, const C4Settings& settings, Judging& judging) {
  bool lorem = settings.refuse_lorem_ipsum && stats.lorem_ipsum_line > 0;
  bool curly = settings.refuse_curly_bracket && stats.curly_bracket_line > 0;
  // The line that comes first decides; on one line lorem ipsum is looked for first.
  bool lorem_first = lorem && (!curly || stats.lorem_ipsum_line <= stats.curly_bracket_line);
  if (settings.refuse_lorem_ipsum) judging.Absent(FilterRule::kLoremIpsum, stats.lorem_ipsum_line, lorem_first);
  if (settings.refuse_curly_bracket) judging.Absent(FilterRule::kCurlyBracket, stats.curly_bracket_line, curly);
}

void JudgeAll(const C4Stats& stats, const C4Settings& settings, Judging& judging) {
  JudgeLines(stats, settings, judging);
  judging.AtLeast(FilterRule::kFewSentences, stats.sentences, settings.sentences_min);
}

void JudgeLines(const FineWebStats& stats, const FineWebSettings& settings, Judging& judging) {
  if (stats.lines == 0) return judging.AtLeast(FilterRule::kFineWebEmpty, 0, 1);
  if (stats.terminal_lines > 0 || !settings.keep_without_terminal_lines) {
    judging.AtLeast(FilterRule::kFewTerminalLines, Judging::Ratio(stats.terminal_lines, stats.lines),
                    settings.terminal_line_fraction_min);
  }
  judging.AtMost(FilterRule::kShortLines, Judging::Ratio(stats.short_lines, stats.lines),
                 settings.short_line_fraction_max);
  judging.AtMost(FilterRule::kFineWebRepeatedLines, Judging::Ratio(stats.repeated_line_characters, stats.characters),
                 settings.repeated_line_character_fraction_max);
}

void JudgeAll(const FineWebStats& stats, const FineWebSettings& settings, Judging& judging) {
  JudgeLines(stats, settings, judging);
  judging.AtMost(FilterRule::kLineEndsPerWord, Judging::Ratio(stats.line_ends, stats.words),
                 settings.line_ends_per_word_max);
}

void JudgeAll(const ParagraphStats& stats, const ParagraphSettings& settings, Judging& judging) {
  if (stats.paragraphs < settings.paragraphs_min) {
    return judging.AtLeast(FilterRule::kFewParagraphs, stats.paragraphs, settings.paragraphs_min);
  }
  judging.AtLeast(FilterRule::kFewParagraphs, stats.least_long, settings.paragraph_characters_min);
}

absl::Status NotMeasured(absl::string_view filter) {
  return absl::FailedPreconditionError(
      absl::StrCat("judge kept numbers: there are none of ", filter, ", which the settings ask for; measure again"));
}

template <typename Stats, typename Settings>
Verdict JudgeOne(const Stats& stats, const Settings& settings) {
  Judging judging;
  JudgeAll(stats, settings, judging);
  return judging.verdict();
}

}  // namespace

absl::string_view FilterName(FilterRule rule) { return kNames[static_cast<int>(rule)].filter; }
absl::string_view ReasonName(FilterRule rule) { return kNames[static_cast<int>(rule)].reason; }

Verdict JudgePieces(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings) {
  Judging judging;
  JudgePieces(stats, settings, judging);
  return judging.verdict();
}

Verdict JudgeGrams(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, int n) {
  Judging judging;
  JudgeGrams(stats, settings, n, judging);
  return judging.verdict();
}

Verdict Judge(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings) {
  return JudgeOne(stats, settings);
}
Verdict Judge(const GopherQualityStats& stats, const GopherQualitySettings& settings) {
  return JudgeOne(stats, settings);
}
Verdict Judge(const C4Stats& stats, const C4Settings& settings) { return JudgeOne(stats, settings); }
Verdict Judge(const FineWebStats& stats, const FineWebSettings& settings) { return JudgeOne(stats, settings); }
Verdict Judge(const ParagraphStats& stats, const ParagraphSettings& settings) { return JudgeOne(stats, settings); }

Verdict JudgeLines(const C4Stats& stats, const C4Settings& settings) {
  Judging judging;
  JudgeLines(stats, settings, judging);
  return judging.verdict();
}

Verdict JudgeLines(const FineWebStats& stats, const FineWebSettings& settings) {
  Judging judging;
  JudgeLines(stats, settings, judging);
  return judging.verdict();
}

absl::StatusOr<Verdict> Judge(const FilterStats& stats, const FilterSettings& settings,
                              std::vector<RuleResult>* all) {
  Judging judging(all);
  auto apply = [&](const auto& measured, const auto& of, absl::string_view filter) {
    if (!of.has_value()) return absl::OkStatus();
    if (!measured.has_value()) return NotMeasured(filter);
    JudgeAll(*measured, *of, judging);
    return absl::OkStatus();
  };
  LLM_RETURN_IF_ERROR(apply(stats.gopher_repetition, settings.gopher_repetition, "gopher_repetition"));
  LLM_RETURN_IF_ERROR(apply(stats.gopher_quality, settings.gopher_quality, "gopher_quality"));
  LLM_RETURN_IF_ERROR(apply(stats.c4, settings.c4, "c4"));
  LLM_RETURN_IF_ERROR(apply(stats.fineweb, settings.fineweb, "fineweb"));
  LLM_RETURN_IF_ERROR(apply(stats.paragraphs, settings.paragraphs, "c4_paragraph"));
  return judging.verdict();
}

}  // namespace llmctl::data
