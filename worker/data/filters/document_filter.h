// Runs the quality filters over documents: FilterRules once, a DocumentFilter per thread.
//
//   FilterRules rules(settings);                 // settings.Validate() has passed
//   DocumentFilter filter(rules);                // scratch of one thread
//   Verdict verdict = filter.Run(text, "en");    // text is C4's version of it, if it is kept
//
// Run() measures only what the verdict needs. Measure() takes all numbers, for Judge() (judge.h) to be asked about now
// or later; what it says of the same settings is what Run() says in the mode kDatatrove, and the same documents are
// kept in either mode.
//
// Filters run in the order of FilterSettings. C4 rewrites the text, and FineWeb and the paragraph rule look at what it
// made of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/filters/c4_lines.h"
#include "worker/data/filters/filter_settings.h"
#include "worker/data/filters/filter_stats.h"
#include "worker/data/filters/judge.h"
#include "worker/data/filters/piece_set.h"
#include "worker/data/filters/repeated_grams.h"
#include "worker/data/text/word_reader.h"
#include "worker/data/text/word_splitter.h"

namespace llmctl::data {

// Const after construction, safe from any thread.
class FilterRules {
 public:
  explicit FilterRules(FilterSettings settings);
  FilterRules(const FilterRules&) = delete;
  FilterRules& operator=(const FilterRules&) = delete;

  const FilterSettings& settings() const { return settings_; }
  const WordSplitter& splitter() const { return splitter_; }
  // Every stop word of any language, once: a WordReader marks them by their place here.
  const std::vector<std::string>& stop_words() const { return stop_words_; }
  // Whether the stop word with mark m (1 and up) is one in `language`, at m.
  const std::vector<bool>& StopWordsOf(absl::string_view language) const;

 private:
  const FilterSettings settings_;
  const WordSplitter splitter_;
  std::vector<std::string> stop_words_;
  std::map<std::string, std::vector<bool>, std::less<>> of_language_;
};

// Not thread-safe. Memory: that of a WordReader (16 MB and one document's), and about 150 bytes per word of the largest
// document.
class DocumentFilter {
 public:
  // `rules` must outlive this.
  explicit DocumentFilter(const FilterRules& rules);

  // `text` is valid UTF-8; `language` a label that has stop words, or any other. A document that is kept is rewritten.
  Verdict Run(std::string& text, absl::string_view language);

  // All numbers. C4's version of the text goes to `rewritten`, whatever the verdict; without that filter it is `text`.
  FilterStats Measure(absl::string_view text, absl::string_view language, std::string& rewritten);

 private:
  Verdict RunBeforeRewriting(absl::string_view text, absl::string_view language);
  Verdict RunRewriting(std::string& text);
  Verdict RunAfterRewriting(absl::string_view text);
  Verdict RunInDatatroveOrder(absl::string_view text, absl::string_view language);
  Verdict RunCheapestFirst(absl::string_view text, absl::string_view language);
  Verdict RunGrams(absl::string_view text, GopherRepetitionStats& stats);
  bool IsGramRuleOn(int n) const;

  void Begin();
  // The words of `text`, which are kept until another is asked for.
  const std::vector<uint32_t>& WordsOf(absl::string_view text);
  GopherRepetitionStats MeasurePieces(absl::string_view text);
  void MeasureGrams(int n, GopherRepetitionStats& stats);
  GopherQualityStats MeasureQuality(absl::string_view text, absl::string_view language);
  GopherQualityStats MeasureWords(absl::string_view text, absl::string_view language);
  void MeasureMarks(absl::string_view text, GopherQualityStats& stats) const;
  FineWebStats MeasureFineWebLines(absl::string_view text);
  ParagraphStats MeasureParagraphs(absl::string_view text) const;

  const FilterRules& rules_;
  WordReader reader_;
  PieceSet pieces_;
  RepeatedGrams grams_;
  std::vector<uint32_t> words_;
  absl::string_view words_of_;  // the text that words_ are of; data() is null before the first
  std::vector<bool> stop_words_seen_;
  std::string rewritten_;
};

}  // namespace llmctl::data
