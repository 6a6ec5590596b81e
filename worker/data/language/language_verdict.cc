#include "worker/data/language/language_verdict.h"

#include "worker/data/language/language_label.h"

namespace llmctl::data {
namespace {

// The entry of `keep` for the longest range that `label` lies in, or null.
const std::optional<double>* FindKept(absl::string_view label, const LanguageSettings& settings) {
  while (true) {
    if (auto at = settings.keep.find(label); at != settings.keep.end()) return &at->second;
    size_t dash = label.rfind('-');
    if (dash == absl::string_view::npos) return nullptr;
    label = label.substr(0, dash);
  }
}

}  // namespace

absl::string_view ReasonName(LanguageRule rule) {
  constexpr absl::string_view kNames[] = {"", "language_unknown", "language_not_kept", "language_below_threshold"};
  return kNames[static_cast<size_t>(rule)];
}

LanguageVerdict Judge(const LanguageGuess& guess, const LanguageSettings& settings) {
  LanguageVerdict verdict{LanguageRule::kNone, guess.score, settings.threshold};
  if (IsLanguageIn(guess.label, kUnknownLanguage)) {
    if (!settings.keep_unknown) verdict.rule = LanguageRule::kUnknown;
    return verdict;
  }
  if (!settings.keep.empty()) {
    const std::optional<double>* kept = FindKept(guess.label, settings);
    if (kept == nullptr) {
      verdict.rule = LanguageRule::kNotKept;
      return verdict;
    }
    verdict.threshold = kept->value_or(settings.threshold);
  }
  if (guess.score < verdict.threshold) verdict.rule = LanguageRule::kBelowThreshold;
  return verdict;
}

}  // namespace llmctl::data
