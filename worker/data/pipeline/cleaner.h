// The stages that look at one document alone: language, quality, perplexity, personal data.
//
//   CleaningRules rules = ...              // once, shared by all threads
//   Cleaner cleaner(rules);                // scratch of one thread
//   cleaner.Run(text, document);           // text is rewritten where a stage does so
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/contract/corpus_config.h"
#include "worker/data/filters/document_filter.h"
#include "worker/data/language/language_detector.h"
#include "worker/data/perplexity/perplexity_filter.h"
#include "worker/data/pii/pii_cleaner.h"
#include "worker/data/pipeline/document_record.h"

namespace llmctl::data {

// Const after construction, safe from any thread.
class CleaningRules {
 public:
  // InvalidArgument, NotFound: a setting or a model file that cannot be used.
  static absl::StatusOr<std::unique_ptr<CleaningRules>> Create(const contract::CorpusConfig& config);
  CleaningRules(const CleaningRules&) = delete;
  CleaningRules& operator=(const CleaningRules&) = delete;

  // Null where a stage is left out.
  const LanguageDetector* language() const { return language_.get(); }
  const LanguageSettings& language_settings() const { return language_settings_; }
  const FilterRules* quality() const { return quality_.get(); }
  const PerplexityModels* perplexity() const { return perplexity_.get(); }
  const PerplexitySettings& perplexity_settings() const { return perplexity_settings_; }
  const PiiRules* pii() const { return pii_.get(); }
  bool keep_measurements() const { return keep_measurements_; }

 private:
  CleaningRules() = default;

  absl::Status LoadLanguage(const contract::LanguageConfig& config);
  absl::Status LoadPii(const contract::PiiConfig& config);

  LanguageSettings language_settings_;
  std::unique_ptr<const LanguageDetector> language_;
  std::unique_ptr<FilterRules> quality_;
  bool keep_measurements_ = false;
  PerplexitySettings perplexity_settings_;
  std::unique_ptr<PerplexityModels> perplexity_;
  std::unique_ptr<PiiRules> pii_;
};

// What the stages say of a document.
struct CleanedDocument {
  Outcome outcome;
  std::string language;  // empty if it was not asked for
  double language_score = 0;
  PerplexityMeasure perplexity;
  std::string measurements;
  std::vector<std::pair<std::string, int64_t>> counters;  // of the report
};

// Not thread-safe.
class Cleaner {
 public:
  // `rules` must outlive it.
  explicit Cleaner(const CleaningRules& rules);

  // `text` is valid UTF-8, normalised.
  absl::Status Run(std::string& text, CleanedDocument& out);

 private:
  void RunLanguage(const std::string& text, CleanedDocument& out);
  absl::Status RunQuality(std::string& text, CleanedDocument& out);
  void RunPerplexity(const std::string& text, CleanedDocument& out);
  void RunPii(std::string& text, CleanedDocument& out);

  const CleaningRules& rules_;
  std::unique_ptr<LanguageScratch> language_;
  std::optional<DocumentFilter> quality_;
  std::optional<PerplexityReader> perplexity_;
  std::optional<PiiCleaner> pii_;
  std::string rewritten_;
};

}  // namespace llmctl::data
