#include "worker/data/perplexity/ngram_trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/perplexity/arpa_writer.h"
#include "worker/data/perplexity/ngram_counter.h"
#include "worker/data/perplexity/ngram_smoother.h"
#include "worker/data/perplexity/ngram_vocabulary.h"

namespace llmctl::data {
namespace {

constexpr uint64_t kMemoryMin = uint64_t{16} << 20;
constexpr uint64_t kObservedEvery = 1 << 20;
// Count, probability and back-off weight.
constexpr uint64_t kNumbersPerWord = 3;

// How many n-grams of an order have the adjusted counts 1, 2, 3 and 4.
struct CountsOfCounts {
  std::array<uint64_t, 4> of{};
  void Add(uint64_t adjusted) {
    if (adjusted >= 1 && adjusted <= of.size()) ++of[adjusted - 1];
  }
};

// Equation 26 of Chen & Goodman; nothing where it has no answer that is a discount.
std::optional<Discounts> EstimateDiscounts(const CountsOfCounts& counts) {
  auto t = [&](int k) { return static_cast<double>(counts.of[k - 1]); };
  if (t(1) == 0 || t(2) == 0 || t(3) == 0) return std::nullopt;
  const double y = t(1) / (t(1) + 2 * t(2));
  Discounts discounts;
  for (int k = 1; k <= 3; ++k) {
    double amount = k - (k + 1) * y * t(k + 1) / t(k);
    if (amount < 0 || amount > k) return std::nullopt;
    discounts.amounts[k - 1] = amount;
  }
  return discounts;
}

class NgramEstimator : public NgramTrainer {
 public:
  NgramEstimator(const NgramTrainSettings& settings, SpillFiles& files, std::string folder)
      : settings_(settings),
        files_(files),
        folder_(std::move(folder)),
        counter_(MakeNgramCounter(settings.order, {&files_, sort_bytes() / 2}, absl::StrCat(folder_, "/counted"))) {
    report_.orders.resize(settings.order);
    counts_of_counts_.resize(settings.order);
  }
  // What an error leaves behind means nothing to anyone.
  ~NgramEstimator() override { files_.RemoveFolder(folder_).IgnoreError(); }

  absl::Status AddLine(absl::Span<const absl::string_view> words) override;
  absl::StatusOr<NgramTrainReport> WriteArpa(const std::string& path, const NgramTrainObserver& observer) override;
  uint64_t words() const override { return report_.words; }

 private:
  uint64_t sort_bytes() const { return settings_.memory_bytes / 2; }
  uint64_t PruneThreshold(int order) const {
    return settings_.prune[std::min<size_t>(order, settings_.prune.size()) - 1];
  }
  NgramSmoother& smoother(int order) { return *smoothers_[order - 2]; }

  SmootherPlace PlaceOf() const;
  absl::Status Adjust();
  void ChooseDiscounts();
  void EstimateWords();
  absl::Status WriteWords(absl::Span<const double> weights, ArpaWriter& out);
  absl::Status WriteOrder(int order, ArpaWriter& out);
  absl::Status WriteOrders(ArpaWriter& out);
  void Observe(absl::string_view step, int order, uint64_t done) {
    if (observer_ != nullptr && (done % kObservedEvery == 0)) observer_({step, order, done});
  }

  const NgramTrainSettings settings_;
  SpillFiles& files_;
  const std::string folder_;
  NgramVocabulary vocabulary_;
  std::unique_ptr<NgramCounter> counter_;
  std::vector<std::unique_ptr<NgramSmoother>> smoothers_;  // from order 2 on
  std::vector<uint32_t> line_;
  NgramTrainReport report_;
  NgramTrainObserver observer_;
  std::vector<CountsOfCounts> counts_of_counts_;
  std::vector<Discounts> discounts_;
  std::vector<uint64_t> word_counts_;  // adjusted, by id
  std::vector<double> word_probabilities_;
};

absl::Status NgramEstimator::AddLine(absl::Span<const absl::string_view> words) {
  line_.clear();
  for (absl::string_view word : words) {
    const uint32_t id = vocabulary_.IdOf(word);
    if (id < kSpecialIds) {
      ++report_.specials_skipped;
    } else {
      line_.push_back(id);
    }
  }
  ++report_.lines;
  report_.words += line_.size();
  const uint64_t vocabulary_bytes = vocabulary_.memory_bytes() + kNumbersPerWord * sizeof(double) * vocabulary_.size();
  if (vocabulary_bytes > settings_.memory_bytes / 2) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "train n-gram model: the vocabulary of ", vocabulary_.size(), " words needs ", vocabulary_bytes,
        " bytes, half of the memory of ", settings_.memory_bytes,
        " bytes; give it more memory, or take the pieces of a tokenizer for words"));
  }
  return counter_->AddLine(line_);
}

// Between them the smoothers hold, while counts are adjusted, what the counter does not; later, two at a time, what
// the counter did.
SmootherPlace NgramEstimator::PlaceOf() const {
  const uint64_t orders = std::max(1, settings_.order - 1);
  return {&files_, folder_, sort_bytes() / 2 / orders, sort_bytes() / 4};
}

absl::Status NgramEstimator::Adjust() {
  for (int order = 2; order <= settings_.order; ++order) smoothers_.push_back(MakeNgramSmoother(order, PlaceOf()));
  word_counts_.assign(vocabulary_.size(), 0);
  uint64_t done = 0;
  LLM_RETURN_IF_ERROR(counter_->Finish([&](const AdjustedGram& gram) -> absl::Status {
    Observe("adjust", gram.order, ++done);
    const uint64_t threshold = PruneThreshold(gram.order);
    const bool pruned = threshold > 0 && gram.count <= threshold;
    NgramOrderReport& report = report_.orders[gram.order - 1];
    ++report.distinct;
    report.kept += pruned ? 0 : 1;
    counts_of_counts_[gram.order - 1].Add(gram.adjusted);
    if (gram.order == 1) {
      word_counts_[gram.words[0]] = gram.adjusted;
      return absl::OkStatus();
    }
    return smoother(gram.order).Add(gram.words, gram.adjusted, pruned);
  }));
  counter_.reset();
  // <unk> and <s>.
  report_.orders[0].distinct += 2;
  report_.orders[0].kept += 2;
  return absl::OkStatus();
}

void NgramEstimator::ChooseDiscounts() {
  for (int order = 1; order <= settings_.order; ++order) {
    const CountsOfCounts& counts = counts_of_counts_[order - 1];
    std::optional<Discounts> estimated = EstimateDiscounts(counts);
    NgramOrderReport& report = report_.orders[order - 1];
    report.fallback = !estimated.has_value();
    discounts_.push_back(estimated.value_or(Discounts{settings_.discount_fallback}));
    report.discounts = discounts_.back().amounts;
    if (!report.fallback) continue;
    report_.warnings.push_back(absl::StrFormat(
        "%d-grams: no Kneser-Ney discounts follow from %d, %d, %d and %d of them with the adjusted counts 1 to 4, so "
        "%g, %g and %g are taken instead: the text is small, made by rules, or full of duplicates (deduplicate it)",
        order, counts.of[0], counts.of[1], counts.of[2], counts.of[3], report.discounts[0], report.discounts[1],
        report.discounts[2]));
  }
}

void NgramEstimator::EstimateWords() {
  double sum = 0, left = 0;
  for (uint64_t count : word_counts_) {
    sum += static_cast<double>(count);
    left += discounts_[0].Of(count);
  }
  const double weight = left / sum;
  // <s> is never what comes next.
  const double uniform = settings_.interpolate_unigrams ? weight / (vocabulary_.size() - 1) : 0;
  word_probabilities_.resize(vocabulary_.size());
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    const uint64_t count = word_counts_[id];
    word_probabilities_[id] = (static_cast<double>(count) - discounts_[0].Of(count)) / sum + uniform;
  }
  if (!settings_.interpolate_unigrams) word_probabilities_[kUnknownId] = weight;
  // As lmplz has it: a line that holds "<s>" by mistake is not made less likely by it.
  word_probabilities_[kBeginId] = 1;
}

// Rounding must not make a probability more than 1.
float LogOf(double value) { return static_cast<float>(std::log10(value)); }
float LogProbability(double value) { return std::min(0.0f, LogOf(value)); }

absl::Status NgramEstimator::WriteWords(absl::Span<const double> weights, ArpaWriter& out) {
  ArpaNgram gram;
  gram.order = 1;
  gram.has_backoff = settings_.order > 1;
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    gram.words[0] = vocabulary_.word(id);
    gram.log_probability = LogProbability(word_probabilities_[id]);
    gram.log_backoff = gram.has_backoff ? LogOf(weights[id]) : 0;
    LLM_RETURN_IF_ERROR(out.Add(gram));
  }
  return absl::OkStatus();
}

absl::Status NgramEstimator::WriteOrder(int order, ArpaWriter& out) {
  const bool highest = order == settings_.order;
  ArpaNgram line;
  line.order = order;
  line.has_backoff = !highest;
  uint64_t done = 0;
  return smoother(order).Interpolate(word_probabilities_, highest, [&](const ModelGram& gram) {
    Observe("write", order, ++done);
    for (int i = 0; i < order; ++i) line.words[i] = vocabulary_.word(gram.words[order - 1 - i]);
    line.log_probability = LogProbability(gram.probability);
    line.log_backoff = LogOf(gram.weight);
    return out.Add(line);
  });
}

absl::Status NgramEstimator::WriteOrders(ArpaWriter& out) {
  std::vector<double> weights;
  if (settings_.order > 1) {
    Observe("smooth", 2, 0);
    LLM_RETURN_IF_ERROR(smoother(2).Smooth(discounts_[1]));
    LLM_ASSIGN_OR_RETURN(weights, ReadWordWeights(PlaceOf(), vocabulary_.size()));
  }
  EstimateWords();
  LLM_RETURN_IF_ERROR(WriteWords(weights, out));
  for (int order = 2; order <= settings_.order; ++order) {
    if (order < settings_.order) {
      Observe("smooth", order + 1, 0);
      LLM_RETURN_IF_ERROR(smoother(order + 1).Smooth(discounts_[order]));
    }
    LLM_RETURN_IF_ERROR(WriteOrder(order, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<NgramTrainReport> NgramEstimator::WriteArpa(const std::string& path,
                                                           const NgramTrainObserver& observer) {
  if (report_.words == 0) {
    return absl::FailedPreconditionError(absl::StrCat("train n-gram model ", path, ": no word was given"));
  }
  observer_ = observer;
  report_.vocabulary = vocabulary_.size();
  LLM_RETURN_IF_ERROR(Adjust());
  ChooseDiscounts();
  std::vector<uint64_t> counts;
  for (const NgramOrderReport& order : report_.orders) counts.push_back(order.kept);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ArpaWriter> out, ArpaWriter::Create(path, counts));
  LLM_RETURN_IF_ERROR(WriteOrders(*out));
  LLM_RETURN_IF_ERROR(out->Finish());
  LLM_RETURN_IF_ERROR(files_.RemoveFolder(folder_));
  return report_;
}

}  // namespace

absl::Status NgramTrainSettings::Validate() const {
  std::vector<std::string> faults;
  if (order < 1 || order > kNgramOrderMax) {
    faults.push_back(absl::StrCat("order is ", order, ", expected 1 to ", kNgramOrderMax));
  }
  if (prune.empty() || prune[0] != 0) faults.push_back("prune: expected 0 first, for 1-grams, which stay");
  if (!std::is_sorted(prune.begin(), prune.end())) {
    faults.push_back("prune: a threshold is below that of a lower order");
  }
  if (order >= 1 && prune.size() > static_cast<size_t>(order)) {
    faults.push_back(absl::StrCat("prune: ", prune.size(), " thresholds for ", order, " orders"));
  }
  for (int k = 1; k <= 3; ++k) {
    const double amount = discount_fallback[k - 1];
    if (!(amount >= 0 && amount <= k)) {
      faults.push_back(absl::StrCat("discount_fallback: ", amount, " for count ", k, ", expected 0 to ", k));
    }
  }
  if (memory_bytes < kMemoryMin) {
    faults.push_back(absl::StrCat("memory is ", memory_bytes, " bytes, expected at least ", kMemoryMin));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("n-gram training: ", absl::StrJoin(faults, "; ")));
}

absl::StatusOr<std::unique_ptr<NgramTrainer>> NgramTrainer::Create(const NgramTrainSettings& settings,
                                                                   SpillFiles& files, std::string folder) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  LLM_RETURN_IF_ERROR(files.RemoveFolder(folder));
  return std::make_unique<NgramEstimator>(settings, files, std::move(folder));
}

absl::Status NgramTrainer::AddDocument(ModelTextReader& reader, absl::string_view document) {
  reader.Start(document);
  while (reader.NextLine(line_)) LLM_RETURN_IF_ERROR(AddLine(line_));
  return absl::OkStatus();
}

absl::StatusOr<NgramTrainReport> TrainNgramModel(const NgramTrainJob& job, SpillFiles& files,
                                                 absl::FunctionRef<absl::StatusOr<bool>(std::string& document)> next,
                                                 const NgramTrainObserver& observer) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<NgramTrainer> trainer, NgramTrainer::Create(job.training, files, job.folder));
  const ModelText text(job.text, job.tokenizer);
  ModelTextReader reader(text);
  std::string document;
  for (uint64_t observed = 0;;) {
    LLM_ASSIGN_OR_RETURN(bool more, next(document));
    if (!more) break;
    LLM_RETURN_IF_ERROR(trainer->AddDocument(reader, document));
    if (observer == nullptr || trainer->words() < observed + kObservedEvery) continue;
    observed = trainer->words();
    observer({"count", 0, observed});
  }
  return trainer->WriteArpa(job.path, observer);
}

}  // namespace llmctl::data
