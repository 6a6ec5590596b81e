#include "worker/data/perplexity/perplexity_filter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kSketchHead = "perplexity-sketch 1 256";

bool IsPerplexity(double value) { return std::isfinite(value) && value >= 0; }

std::string Shown(absl::string_view language) { return absl::StrCat("\"", language, "\""); }

void CheckPercentiles(const PerplexitySettings& settings, std::vector<std::string>& faults) {
  for (auto [name, value] : {std::pair("head_percentile", settings.head_percentile),
                             std::pair("middle_percentile", settings.middle_percentile)}) {
    if (!(value > 0 && value < 100)) {
      faults.push_back(absl::StrCat(name, " is ", value, ", expected a number above 0 and below 100"));
    }
  }
  if (settings.head_percentile > settings.middle_percentile) {
    faults.push_back(absl::StrCat("head_percentile, ", settings.head_percentile, ", is above middle_percentile, ",
                                  settings.middle_percentile));
  }
  for (const auto& [language, cutoffs] : settings.cutoffs) {
    if (IsPerplexity(cutoffs.head) && IsPerplexity(cutoffs.middle) && cutoffs.head <= cutoffs.middle) continue;
    faults.push_back(absl::StrCat("cutoffs.", Shown(language), ": head ", cutoffs.head, ", middle ", cutoffs.middle,
                                  ", expected numbers from 0 on, head at most middle"));
  }
}

// The edge of the bucket that is nearest to the perplexity, for the message of a verdict.
double NearestEdge(PerplexityBucket bucket, double perplexity, const PerplexityCutoffs& cutoffs) {
  if (bucket == PerplexityBucket::kHead) return cutoffs.head;
  if (bucket == PerplexityBucket::kTail) return cutoffs.middle;
  return perplexity - cutoffs.head < cutoffs.middle - perplexity ? cutoffs.head : cutoffs.middle;
}

}  // namespace

absl::string_view BucketName(PerplexityBucket bucket) {
  switch (bucket) {
    case PerplexityBucket::kAll: return "all";
    case PerplexityBucket::kHead: return "head";
    case PerplexityBucket::kMiddle: return "middle";
    case PerplexityBucket::kTail: return "tail";
  }
  return "";
}

absl::string_view ReasonName(PerplexityReason reason) {
  switch (reason) {
    case PerplexityReason::kNone: return "";
    case PerplexityReason::kTooHigh: return "perplexity_too_high";
    case PerplexityReason::kTooLow: return "perplexity_too_low";
    case PerplexityReason::kBucket: return "perplexity_bucket";
  }
  return "";
}

absl::Status PerplexitySettings::Validate() const {
  std::vector<std::string> faults;
  if (models.empty()) faults.push_back("models: none is given");
  for (const auto& [language, path] : models) {
    if (path.empty()) faults.push_back(absl::StrCat("models.", Shown(language), ": no file is given"));
  }
  if (text.unit == ModelUnit::kPieces && tokenizer.empty()) {
    faults.push_back("tokenizer: pieces need a tokenizer.json, none is given");
  }
  if (text.unit == ModelUnit::kWords && !tokenizer.empty()) {
    faults.push_back("tokenizer: one is given, but the unit is words");
  }
  CheckPercentiles(*this, faults);
  if (keep_buckets.has_value() && keep_buckets->empty()) faults.push_back("keep_buckets: it lists none");
  for (auto [name, value] :
       {std::pair("perplexity_min", perplexity_min), std::pair("perplexity_max", perplexity_max)}) {
    if (value.has_value() && !IsPerplexity(*value)) {
      faults.push_back(absl::StrCat(name, " is ", *value, ", expected a number from 0 on"));
    }
  }
  if (perplexity_min.has_value() && perplexity_max.has_value() && *perplexity_min > *perplexity_max) {
    faults.push_back(absl::StrCat("perplexity_min, ", *perplexity_min, ", is above perplexity_max, ", *perplexity_max));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("perplexity: ", absl::StrJoin(faults, "; ")));
}

const PerplexityCutoffs* FindCutoffs(const std::map<std::string, PerplexityCutoffs>& cutoffs,
                                     absl::string_view language) {
  auto found = cutoffs.find(std::string(language));
  if (found == cutoffs.end()) found = cutoffs.find("");
  return found == cutoffs.end() ? nullptr : &found->second;
}

PerplexityVerdict JudgePerplexity(const PerplexityMeasure& measure, const PerplexityCutoffs* cutoffs,
                                  const PerplexitySettings& settings) {
  PerplexityVerdict verdict;
  if (!measure.scored) return verdict;
  const double perplexity = measure.perplexity;
  verdict.measured = perplexity;
  if (cutoffs != nullptr) {
    verdict.bucket = perplexity < cutoffs->head     ? PerplexityBucket::kHead
                     : perplexity < cutoffs->middle ? PerplexityBucket::kMiddle
                                                    : PerplexityBucket::kTail;
  }
  auto drop = [&](PerplexityReason reason, double threshold) {
    verdict.reason = reason;
    verdict.threshold = threshold;
    return verdict;
  };
  if (settings.perplexity_max.has_value() && perplexity > *settings.perplexity_max) {
    return drop(PerplexityReason::kTooHigh, *settings.perplexity_max);
  }
  if (settings.perplexity_min.has_value() && perplexity < *settings.perplexity_min) {
    return drop(PerplexityReason::kTooLow, *settings.perplexity_min);
  }
  if (!settings.keep_buckets.has_value() || verdict.bucket == PerplexityBucket::kAll) return verdict;
  const std::vector<PerplexityBucket>& keep = *settings.keep_buckets;
  if (std::find(keep.begin(), keep.end(), verdict.bucket) != keep.end()) return verdict;
  return drop(PerplexityReason::kBucket, NearestEdge(verdict.bucket, perplexity, *cutoffs));
}

absl::StatusOr<std::unique_ptr<PerplexityModels>> PerplexityModels::Load(const PerplexitySettings& settings) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  std::unique_ptr<PerplexityModels> all(new PerplexityModels);
  if (settings.text.unit == ModelUnit::kPieces) {
    // Special tokens that stand in a text are text: their names would be words of no model.
    LLM_ASSIGN_OR_RETURN(all->tokenizer_,
                         ReadBpeTokenizer(settings.tokenizer, {.added_tokens = AddedTokensInText::kPlain}));
  }
  all->text_ = std::make_unique<ModelText>(settings.text, all->tokenizer_.get());
  for (const auto& [language, path] : settings.models) {
    LLM_ASSIGN_OR_RETURN(NgramModel model, NgramModel::LoadFile(path));
    all->models_.emplace(language, std::move(model));
  }
  return all;
}

const NgramModel* PerplexityModels::ModelFor(absl::string_view language) const {
  auto found = models_.find(language);
  if (found == models_.end()) found = models_.find("");
  return found == models_.end() ? nullptr : &found->second;
}

uint64_t PerplexityModels::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [language, model] : models_) bytes += model.memory_bytes();
  return bytes;
}

PerplexityReader::PerplexityReader(const PerplexityModels& models) : models_(models), reader_(models.text()) {}

PerplexityMeasure PerplexityReader::Measure(absl::string_view document, absl::string_view language) {
  PerplexityMeasure measure;
  const NgramModel* model = models_.ModelFor(language);
  if (model == nullptr) return measure;
  NgramScorer& scorer = scorers_.try_emplace(model, *model).first->second;
  scorer.Clear();
  reader_.Start(document);
  while (reader_.NextLine(words_)) {
    scorer.BeginLine();
    for (absl::string_view word : words_) scorer.AddWord(word);
    scorer.EndLine();
  }
  measure.score = scorer.Score();
  measure.perplexity = measure.score.Perplexity();
  measure.scored = measure.score.length > 0;
  return measure;
}

void PerplexitySketch::Add(absl::string_view language, const PerplexityMeasure& measure) {
  if (!measure.scored) return;
  auto found = counts_.find(language);
  if (found == counts_.end()) found = counts_.emplace(std::string(language), Counts(kBins)).first;
  const double bin = std::floor(std::log2(measure.perplexity) * kBinsPerDoubling);
  ++found->second[static_cast<size_t>(std::clamp<double>(bin, 0, kBins - 1))];
}

void PerplexitySketch::Merge(const PerplexitySketch& other) {
  for (const auto& [language, counts] : other.counts_) {
    Counts& mine = counts_.try_emplace(language, kBins).first->second;
    for (int i = 0; i < kBins; ++i) mine[i] += counts[i];
  }
}

uint64_t PerplexitySketch::count(absl::string_view language) const {
  auto found = counts_.find(language);
  uint64_t count = 0;
  if (found == counts_.end()) return count;
  for (uint64_t bin : found->second) count += bin;
  return count;
}

std::vector<std::string> PerplexitySketch::languages() const {
  std::vector<std::string> names;
  for (const auto& [language, counts] : counts_) names.push_back(language);
  return names;
}

double PerplexitySketch::PercentileOf(const Counts& counts, double percentile) {
  uint64_t all = 0, below = 0;
  for (uint64_t count : counts) all += count;
  if (all == 0) return 0;
  for (int bin = 0; bin < kBins; ++bin) {
    below += counts[bin];
    if (static_cast<double>(below) * 100 >= percentile * static_cast<double>(all)) {
      return std::exp2(static_cast<double>(bin + 1) / kBinsPerDoubling);
    }
  }
  return std::exp2(static_cast<double>(kBins) / kBinsPerDoubling);
}

double PerplexitySketch::Percentile(absl::string_view language, double percentile) const {
  auto found = counts_.find(language);
  return found == counts_.end() ? 0 : PercentileOf(found->second, percentile);
}

std::map<std::string, PerplexityCutoffs> PerplexitySketch::Cutoffs(const PerplexitySettings& settings) const {
  std::map<std::string, PerplexityCutoffs> cutoffs;
  Counts together(kBins);
  auto of = [&](const Counts& counts) {
    return PerplexityCutoffs{PercentileOf(counts, settings.head_percentile),
                             PercentileOf(counts, settings.middle_percentile)};
  };
  for (const auto& [language, counts] : counts_) {
    cutoffs[language] = of(counts);
    for (int i = 0; i < kBins; ++i) together[i] += counts[i];
  }
  if (!counts_.empty()) cutoffs[""] = of(together);
  return cutoffs;
}

std::string PerplexitySketch::Serialize() const {
  std::string out = absl::StrCat(kSketchHead, "\n");
  for (const auto& [language, counts] : counts_) {
    absl::StrAppend(&out, "language ", language, "\n");
    for (int i = 0; i < kBins; ++i) {
      if (counts[i] > 0) absl::StrAppend(&out, i, " ", counts[i], "\n");
    }
  }
  return out + "end\n";
}

absl::StatusOr<PerplexitySketch> PerplexitySketch::Parse(absl::string_view text) {
  PerplexitySketch sketch;
  Counts* counts = nullptr;
  int number = 0;
  bool ended = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    uint64_t count = 0;
    int bin = 0;
    absl::string_view language = line;
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (number == 1 ? line == kSketchHead : ended ? line.empty() : false) continue;
    if (number > 1 && !ended && line == "end") {
      ended = true;
    } else if (number > 1 && !ended && absl::ConsumePrefix(&language, "language ")) {
      counts = &sketch.counts_.try_emplace(std::string(language), kBins).first->second;
    } else if (number > 1 && !ended && counts != nullptr && absl::SimpleAtoi(parts.first, &bin) && bin >= 0 &&
               bin < kBins && absl::SimpleAtoi(parts.second, &count)) {
      (*counts)[bin] += count;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("read perplexity sketch: line ", number, ": \"",
                                                     line.substr(0, 80), "\" is none of a sketch's"));
    }
  }
  if (!ended) return absl::InvalidArgumentError("read perplexity sketch: it ends before its last line, \"end\"");
  return sketch;
}

}  // namespace llmctl::data
