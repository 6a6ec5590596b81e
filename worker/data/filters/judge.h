// From numbers to a verdict: which rule drops a document, on what number, by what threshold.
//
// Pure functions of FilterStats and FilterSettings, for documents that are read (FilterChain) and for numbers that were
// kept from an earlier run.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/filters/filter_settings.h"
#include "worker/data/filters/filter_stats.h"

namespace llmctl::data {

// In the order in which datatrove tries them.
enum class FilterRule : uint8_t {
  kNone,
  kRepetitionEmpty,
  kRepeatedParagraphs,
  kRepeatedParagraphCharacters,
  kRepeatedLines,
  kRepeatedLineCharacters,
  kTop2Gram,
  kTop3Gram,
  kTop4Gram,
  kRepeated5Grams,
  kRepeated6Grams,
  kRepeated7Grams,
  kRepeated8Grams,
  kRepeated9Grams,
  kRepeated10Grams,
  kFewWords,
  kManyWords,
  kShortWords,
  kLongWords,
  kHashes,
  kEllipses,
  kBulletLines,
  kEllipsisLines,
  kFewLetterWords,
  kFewStopWords,
  kLoremIpsum,
  kCurlyBracket,
  kFewSentences,
  kFineWebEmpty,
  kFewTerminalLines,
  kShortLines,
  kFineWebRepeatedLines,
  kLineEndsPerWord,
  kFewParagraphs,
};

// "gopher_repetition", "gopher_quality", "c4", "fineweb", "c4_paragraph"; "" of kNone.
absl::string_view FilterName(FilterRule rule);
// datatrove's name for the reason: "dup_line_frac". Two filters have an "empty". (datatrove calls
// "too_few_paragraphs" "< 3 paragraphs", whatever the setting.)
absl::string_view ReasonName(FilterRule rule);

struct Verdict {
  FilterRule rule = FilterRule::kNone;  // that drops the document
  double measured = 0;
  double threshold = 0;

  bool keep() const { return rule == FilterRule::kNone; }
  bool operator==(const Verdict&) const = default;
};

// The first rule that drops, in datatrove's order. The parts are for those who measure step by step.
Verdict JudgePieces(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings);
// Of the n-grams of `n` words, 2 to 10.
Verdict JudgeGrams(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings, int n);
Verdict Judge(const GopherRepetitionStats& stats, const GopherRepetitionSettings& settings);
Verdict Judge(const GopherQualityStats& stats, const GopherQualitySettings& settings);
// Before sentences are counted.
Verdict JudgeLines(const C4Stats& stats, const C4Settings& settings);
Verdict Judge(const C4Stats& stats, const C4Settings& settings);
// Before words are counted.
Verdict JudgeLines(const FineWebStats& stats, const FineWebSettings& settings);
Verdict Judge(const FineWebStats& stats, const FineWebSettings& settings);
Verdict Judge(const ParagraphStats& stats, const ParagraphSettings& settings);

// What a rule says that may not be the one that decides.
struct RuleResult {
  Verdict verdict;             // the rule, what was measured, the threshold
  absl::string_view expected;  // "at most" or "at least" the threshold; "none" of something
  bool drops = false;
};
// FailedPrecondition names a filter that is on in `settings` but was not measured. Every rule that was looked at is
// added to `all`, if there is one.
absl::StatusOr<Verdict> Judge(const FilterStats& stats, const FilterSettings& settings,
                              std::vector<RuleResult>* all = nullptr);

}  // namespace llmctl::data
