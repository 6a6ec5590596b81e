// From a detector's answer to a verdict: a pure function, for documents that are read and for answers that were kept
// from an earlier run.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/language/language_settings.h"

namespace llmctl::data {

// The labels live as long as the detector that gave them. Scores lie within 0 and 1.
struct LanguageGuess {
  absl::string_view label;  // "und" if unknown
  double score = 0;
  absl::string_view second;  // empty if there is none
  double second_score = 0;

  bool operator==(const LanguageGuess&) const = default;
};

enum class LanguageRule : uint8_t {
  kNone,
  kUnknown,         // nothing to tell by
  kNotKept,         // of a language that is not to be kept
  kBelowThreshold,  // of a language that is, but not clearly enough
};

// "language_unknown", "language_not_kept", "language_below_threshold"; "" of kNone.
absl::string_view ReasonName(LanguageRule rule);

struct LanguageVerdict {
  LanguageRule rule = LanguageRule::kNone;  // that drops the document
  double measured = 0;                      // the score
  double threshold = 0;                     // that of the language

  bool keep() const { return rule == LanguageRule::kNone; }
  bool operator==(const LanguageVerdict&) const = default;
};

// A score equal to its threshold is kept.
LanguageVerdict Judge(const LanguageGuess& guess, const LanguageSettings& settings);

}  // namespace llmctl::data
