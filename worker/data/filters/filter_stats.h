// What the filters measure of a document: counts only, so that every ratio can be formed again later, and judged by
// other thresholds, without the text. Characters are Unicode code points. About 400 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace llmctl::data {

struct GopherRepetitionStats {
  static constexpr int kTopGramMin = 2;       // words in the n-grams of top_gram_characters[0]
  static constexpr int kRepeatedGramMin = 5;  // and of repeated_gram_characters[0]

  int64_t characters = 0;
  int64_t paragraphs = 0;
  int64_t repeated_paragraphs = 0;  // all but the first of equal ones
  int64_t repeated_paragraph_characters = 0;
  int64_t lines = 0;
  int64_t repeated_lines = 0;
  int64_t repeated_line_characters = 0;
  // Length of the most frequent 2-, 3-, 4-gram times how often it comes; 0 in shorter texts.
  std::array<int64_t, 3> top_gram_characters = {};
  // Characters in 5- to 10-grams that came before, without overlap.
  std::array<int64_t, 6> repeated_gram_characters = {};

  bool operator==(const GopherRepetitionStats&) const = default;
};

struct GopherQualityStats {
  int64_t words = 0;
  int64_t plain_words = 0;  // with anything but punctuation in them
  int64_t plain_word_characters = 0;
  int64_t letter_words = 0;  // with a letter in them
  int64_t stop_words = 0;    // different ones
  int64_t hashes = 0;
  int64_t ellipses = 0;
  int64_t lines = 0;
  int64_t bullet_lines = 0;
  int64_t ellipsis_lines = 0;

  bool operator==(const GopherQualityStats&) const = default;
};

struct C4Stats {
  int64_t lines = 0;
  int64_t long_word_lines = 0;  // lines dropped, by the first rule that did
  int64_t unterminated_lines = 0;
  int64_t short_lines = 0;
  int64_t javascript_lines = 0;
  int64_t policy_lines = 0;
  int64_t kept_lines = 0;
  int64_t sentences = 0;
  int64_t lorem_ipsum_line = 0;  // number of the first line with it, from 1 on; 0: none
  int64_t curly_bracket_line = 0;

  bool operator==(const C4Stats&) const = default;
};

// Of the text as C4 rewrote it, if that filter is on.
struct FineWebStats {
  int64_t lines = 0;  // that are not blank
  int64_t terminal_lines = 0;
  int64_t short_lines = 0;
  int64_t characters = 0;  // without line feeds
  int64_t repeated_line_characters = 0;
  int64_t line_ends = 0;
  int64_t words = 0;

  bool operator==(const FineWebStats&) const = default;
};

struct ParagraphStats {
  int64_t paragraphs = 0;
  int64_t least_long = 0;  // characters of the `paragraphs_min`-th longest; 0 if there are fewer

  bool operator==(const ParagraphStats&) const = default;
};

// Those of the filters that are on.
struct FilterStats {
  std::optional<GopherRepetitionStats> gopher_repetition;
  std::optional<GopherQualityStats> gopher_quality;
  std::optional<C4Stats> c4;
  std::optional<FineWebStats> fineweb;
  std::optional<ParagraphStats> paragraphs;

  bool operator==(const FilterStats&) const = default;
};

}  // namespace llmctl::data
