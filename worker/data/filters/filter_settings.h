// What the quality filters may be told: every threshold of Gopher quality, Gopher repetition, C4, FineWeb and mC4's
// paragraph rule, with datatrove's defaults (which follow the papers but where docs/data/filters.md says otherwise).
//
// A rule drops a document when the measured number is beyond its threshold; a number equal to it is kept. A threshold
// that is absent switches its rule off.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace llmctl::data {

// How much the verdicts are to be those of datatrove 0.10.1.
enum class FilterMode {
  // The same documents are kept but for the n-gram rules' letter-exactness (below); rules are tried cheapest first, so
  // that of several that would drop a document another one may be named.
  kDefault,
  // The same documents are dropped for the same reasons: rules are tried in datatrove's order, and two n-grams are
  // equal when their words written without spaces are ("ab c" and "a bc").
  kDatatrove,
};

// Table A1 of the Gopher paper, https://arxiv.org/abs/2112.11446.
struct GopherRepetitionSettings {
  std::optional<double> paragraph_fraction_max = 0.3;
  std::optional<double> paragraph_character_fraction_max = 0.2;
  std::optional<double> line_fraction_max = 0.3;
  std::optional<double> line_character_fraction_max = 0.2;
  // Of the most frequent 2-, 3- and 4-gram.
  std::array<std::optional<double>, 3> top_gram_fraction_max = {0.2, 0.18, 0.16};
  // Of repeated 5- to 10-grams.
  std::array<std::optional<double>, 6> repeated_gram_fraction_max = {0.15, 0.14, 0.13, 0.12, 0.11, 0.10};

  bool operator==(const GopherRepetitionSettings&) const = default;
};

struct GopherQualitySettings {
  std::optional<double> words_min = 50;
  std::optional<double> words_max = 100000;
  std::optional<double> mean_word_characters_min = 3;
  std::optional<double> mean_word_characters_max = 10;
  std::optional<double> hash_ratio_max = 0.1;
  std::optional<double> ellipsis_ratio_max = 0.1;
  std::optional<double> bullet_line_fraction_max = 0.9;
  std::optional<double> ellipsis_line_fraction_max = 0.3;
  std::optional<double> letter_word_fraction_min = 0.8;
  std::optional<double> stop_words_min = 2;
  // Stop words by language label; the list of "" serves languages without one. They are compared as written.
  std::map<std::string, std::vector<std::string>> stop_words = {
      {"", {"the", "be", "to", "of", "and", "that", "have", "with"}}};

  bool operator==(const GopherQualitySettings&) const = default;
};

// https://arxiv.org/abs/1910.10683, section 2.2. The filter rewrites the text: lines go, the others stay.
struct C4Settings {
  bool remove_citations = true;        // [12], [edit], [citation needed]
  bool terminal_mark_required = true;  // FineWeb switches it off
  bool drop_javascript_lines = true;
  bool drop_policy_lines = true;
  bool refuse_lorem_ipsum = true;
  bool refuse_curly_bracket = true;
  std::optional<double> sentences_min = 5;
  std::optional<int64_t> line_words_min = 3;
  std::optional<int64_t> word_characters_max = 1000;

  bool operator==(const C4Settings&) const = default;
};

// https://arxiv.org/abs/2406.17557, section 3.4 (repeated_line_character_fraction_max there: 0.1).
struct FineWebSettings {
  std::optional<double> terminal_line_fraction_min = 0.12;
  bool keep_without_terminal_lines = false;  // datatrove's line_punct_exclude_zero
  std::optional<double> short_line_fraction_max = 0.67;
  int64_t short_line_characters = 30;
  std::optional<double> repeated_line_character_fraction_max = 0.01;
  std::optional<double> line_ends_per_word_max = 0.3;

  bool operator==(const FineWebSettings&) const = default;
};

// mC4's rule: the longest `paragraphs_min` lines must have so many characters.
struct ParagraphSettings {
  int64_t paragraphs_min = 3;
  int64_t paragraph_characters_min = 200;

  bool operator==(const ParagraphSettings&) const = default;
};

// Filters that are present run in this order.
struct FilterSettings {
  FilterMode mode = FilterMode::kDefault;
  std::optional<GopherRepetitionSettings> gopher_repetition;
  std::optional<GopherQualitySettings> gopher_quality;
  std::optional<C4Settings> c4;
  std::optional<FineWebSettings> fineweb;
  std::optional<ParagraphSettings> paragraphs;

  // All faults in one message.
  absl::Status Validate() const;

  // The four filters of the FineWeb data set, set as there.
  static FilterSettings FineWeb();

  bool operator==(const FilterSettings&) const = default;
};

// What of `settings` decides the numbers, not what follows from them: numbers that were measured under one of these
// may be judged by any settings with the same one.
std::string MeasurementOf(const FilterSettings& settings);

}  // namespace llmctl::data
