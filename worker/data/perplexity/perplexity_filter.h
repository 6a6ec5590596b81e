// The perplexity filter: what a language model takes a document for, and what follows from it.
//
//   PerplexityModels   the models by language, loaded once, shared by all threads
//   PerplexityReader   one per thread: document -> PerplexityMeasure
//   PerplexitySketch   perplexities by language, mergeable: gives the cut-offs between buckets
//   JudgePerplexity    measure, cut-offs, settings -> bucket and verdict; pure
//
// As in CCNet, the perplexity is 10^(-log10 p / length) over all lines of the document, length = words + 1 for each
// line; a document is in the head if it is below the cut-off of its language's 30th percentile, in the middle below the
// 60th, else in the tail. A language without a model, or a document without a line to score, is in "all".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/perplexity/model_text.h"
#include "worker/data/perplexity/ngram_model.h"

namespace llmctl::data {

enum class PerplexityBucket : uint8_t { kAll, kHead, kMiddle, kTail };
absl::string_view BucketName(PerplexityBucket bucket);  // all, head, middle, tail

struct PerplexityCutoffs {
  double head = 0;    // below: head
  double middle = 0;  // below: middle
};

struct PerplexitySettings {
  ModelTextSettings text;
  std::map<std::string, std::string> models;  // language -> ARPA file; that of "" serves languages without one
  std::string tokenizer;                      // tokenizer.json, for pieces
  // cc_net's percentiles. Used where no cut-offs are given.
  double head_percentile = 30;
  double middle_percentile = 60;
  std::map<std::string, PerplexityCutoffs> cutoffs;  // by language; that of "" serves languages without one
  // Absent: labels only. Documents in "all" are kept in any case.
  std::optional<std::vector<PerplexityBucket>> keep_buckets;
  std::optional<double> perplexity_min;
  std::optional<double> perplexity_max;

  // All faults in one message.
  absl::Status Validate() const;
};

struct PerplexityMeasure {
  bool scored = false;  // there is a model for its language, and a line
  TextScore score;
  double perplexity = 0;
};

enum class PerplexityReason : uint8_t { kNone, kTooHigh, kTooLow, kBucket };
// perplexity_too_high, perplexity_too_low, perplexity_bucket; "" of kNone.
absl::string_view ReasonName(PerplexityReason reason);

struct PerplexityVerdict {
  PerplexityReason reason = PerplexityReason::kNone;  // that drops the document
  PerplexityBucket bucket = PerplexityBucket::kAll;
  double measured = 0;
  double threshold = 0;  // of a bucket: the cut-off that was not met, or was

  bool keep() const { return reason == PerplexityReason::kNone; }
};

// `cutoffs` null: none for this language, its bucket is "all".
PerplexityVerdict JudgePerplexity(const PerplexityMeasure& measure, const PerplexityCutoffs* cutoffs,
                                  const PerplexitySettings& settings);
// The cut-offs of a language, or those of "", or null.
const PerplexityCutoffs* FindCutoffs(const std::map<std::string, PerplexityCutoffs>& cutoffs,
                                     absl::string_view language);

class PerplexityModels {
 public:
  static absl::StatusOr<std::unique_ptr<PerplexityModels>> Load(const PerplexitySettings& settings);

  // Null if there is none for it.
  const NgramModel* ModelFor(absl::string_view language) const;
  const ModelText& text() const { return *text_; }
  uint64_t memory_bytes() const;

 private:
  PerplexityModels() = default;

  std::unique_ptr<BpeTokenizer> tokenizer_;
  std::unique_ptr<ModelText> text_;
  std::map<std::string, NgramModel, std::less<>> models_;
};

class PerplexityReader {
 public:
  // `models` outlives it.
  explicit PerplexityReader(const PerplexityModels& models);

  PerplexityMeasure Measure(absl::string_view document, absl::string_view language);

 private:
  const PerplexityModels& models_;
  ModelTextReader reader_;
  std::map<const NgramModel*, NgramScorer> scorers_;
  std::vector<absl::string_view> words_;
};

// How many documents have which perplexity, by language. Sketches of parts of a corpus add up to that of the whole,
// in any order.
//
// A bin is 1/256 of a doubling: a cut-off is at most 0.28 % above the exact percentile. Perplexities from 1 to 2^32
// have bins, others go to the nearest. Memory: 64 KiB a language.
class PerplexitySketch {
 public:
  static constexpr int kBinsPerDoubling = 256;
  static constexpr int kBins = 32 * kBinsPerDoubling;

  // Nothing for a document that was not scored.
  void Add(absl::string_view language, const PerplexityMeasure& measure);
  void Merge(const PerplexitySketch& other);

  uint64_t count(absl::string_view language) const;
  std::vector<std::string> languages() const;

  // The least edge of a bin below which at least `percentile` per cent of the language's documents lie; 0 without any.
  double Percentile(absl::string_view language, double percentile) const;
  // For every language, by the settings' percentiles; and those of all documents together for "".
  std::map<std::string, PerplexityCutoffs> Cutoffs(const PerplexitySettings& settings) const;

  // To hand a sketch to another process. InvalidArgument for a text that Serialize did not make.
  std::string Serialize() const;
  static absl::StatusOr<PerplexitySketch> Parse(absl::string_view text);

 private:
  using Counts = std::vector<uint64_t>;  // kBins

  static double PercentileOf(const Counts& counts, double percentile);

  std::map<std::string, Counts, std::less<>> counts_;
};

}  // namespace llmctl::data
