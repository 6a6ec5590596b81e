// Lists that two other programs' rules are made of, as data: which characters spaCy's English rules and datatrove's
// filters name, and the words with rules of their own. make_rule_tables.py reads them out of the two packages.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::data {

// From `first` on, up to the next run's, every code point has `classes` (bits 0..11 of CharacterClass).
struct MaskRun {
  uint32_t first;
  uint16_t classes;
};
absl::Span<const MaskRun> MaskRuns();

// spaCy's special cases: their words, joined by a space ("do n't"); the text is what they make without it.
absl::Span<const absl::string_view> WordExceptions();
// What is a word of its own behind a digit.
absl::Span<const absl::string_view> Units();
// Currencies of more than one character ("US$").
absl::Span<const absl::string_view> CurrencyWords();

}  // namespace llmctl::data
