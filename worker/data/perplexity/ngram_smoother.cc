#include "worker/data/perplexity/ngram_smoother.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/perplexity/ngram_records.h"

namespace llmctl::data {
namespace {

// N-grams that are not to be in the model have this bit in their count.
constexpr uint64_t kPruned = uint64_t{1} << 63;

std::string WeightsPath(const std::string& folder, int words) { return absl::StrCat(folder, "/weights-", words); }
std::string ProbabilitiesPath(const std::string& folder, int order) {
  return absl::StrCat(folder, "/probabilities-", order);
}

template <typename Record>
absl::StatusOr<RecordFileWriter> CreateRecords(SpillFiles& files, const std::string& path) {
  return RecordFileWriter::Create(files, path, GramFileType(sizeof(Record)));
}

template <int N>
class NgramSmootherOf : public NgramSmoother {
 public:
  explicit NgramSmootherOf(const SmootherPlace& place)
      : place_(place), adjusted_(std::in_place, MergePlace{{place.files, place.adjusted_bytes},
                                                           absl::StrCat(place.folder, "/adjusted-", N),
                                                           GramFileType(sizeof(GramCount<N>))}) {}

  absl::Status Add(const uint32_t* words, uint64_t adjusted, bool pruned) override {
    GramCount<N> gram;
    // The context first, then the word.
    std::copy(words + 1, words + N, gram.words);
    gram.words[N - 1] = words[0];
    gram.count = adjusted | (pruned ? kPruned : 0);
    return adjusted_->Add(gram);
  }

  absl::Status Smooth(const Discounts& discounts) override {
    smoothed_.emplace(MergePlace{{place_.files, place_.smoothed_bytes},
                                 absl::StrCat(place_.folder, "/smoothed-", N),
                                 GramFileType(sizeof(SmoothedGram<N>))});
    LLM_ASSIGN_OR_RETURN(RecordFileWriter weights,
                         CreateRecords<GramValue<N - 1>>(*place_.files, WeightsPath(place_.folder, N - 1)));
    std::vector<GramCount<N>> same_context;
    LLM_RETURN_IF_ERROR(adjusted_->Finish([&](const GramCount<N>& gram) -> absl::Status {
      if (!same_context.empty() && !std::equal(gram.words, gram.words + N - 1, same_context[0].words)) {
        LLM_RETURN_IF_ERROR(SmoothContext(same_context, discounts, weights));
        same_context.clear();
      }
      same_context.push_back(gram);
      return absl::OkStatus();
    }));
    adjusted_.reset();
    if (!same_context.empty()) LLM_RETURN_IF_ERROR(SmoothContext(same_context, discounts, weights));
    return weights.Commit({}).status();
  }

  absl::Status Interpolate(absl::Span<const double> words, bool highest,
                           absl::FunctionRef<absl::Status(const ModelGram&)> emit) override {
    std::optional<RecordStream<GramValue<N - 1>>> shorter;
    std::optional<RecordStream<GramValue<N>>> weights;
    std::optional<RecordFileWriter> out;
    if constexpr (N > 2) {
      LLM_RETURN_IF_ERROR(OpenStream(ProbabilitiesPath(place_.folder, N - 1), shorter));
    }
    if (!highest) {
      LLM_RETURN_IF_ERROR(OpenStream(WeightsPath(place_.folder, N), weights));
      LLM_ASSIGN_OR_RETURN(out, CreateRecords<GramValue<N>>(*place_.files, ProbabilitiesPath(place_.folder, N)));
    }
    LLM_RETURN_IF_ERROR(smoothed_->Finish([&](const SmoothedGram<N>& gram) -> absl::Status {
      double below = 0;
      if constexpr (N == 2) {
        below = words[gram.words[0]];
      } else {
        LLM_ASSIGN_OR_RETURN(below, ValueAt(*shorter, gram.words));
      }
      GramValue<N> value;
      std::copy(gram.words, gram.words + N, value.words);
      value.value = gram.probability + gram.weight * below;
      double weight = 1;
      if (weights.has_value()) {
        LLM_ASSIGN_OR_RETURN(weight, WeightAt(*weights, value));
        LLM_RETURN_IF_ERROR(out->Append(&value, 1));
      }
      return emit({value.words, value.value, weight});
    }));
    smoothed_.reset();
    return out.has_value() ? out->Commit({}).status() : absl::OkStatus();
  }

 private:
  template <typename Record>
  absl::Status OpenStream(const std::string& path, std::optional<RecordStream<Record>>& out) const {
    LLM_ASSIGN_OR_RETURN(RecordStream<Record> stream, RecordStream<Record>::Open(*place_.files, path));
    out.emplace(std::move(stream));
    return absl::OkStatus();
  }

  absl::Status SmoothContext(const std::vector<GramCount<N>>& grams, const Discounts& discounts,
                             RecordFileWriter& weights) {
    double sum = 0, left = 0;
    for (const GramCount<N>& gram : grams) {
      const uint64_t count = gram.count & ~kPruned;
      sum += static_cast<double>(count);
      left += gram.count == count ? discounts.Of(count) : static_cast<double>(count);
    }
    GramValue<N - 1> weight;
    std::copy(grams[0].words, grams[0].words + N - 1, weight.words);
    weight.value = left / sum;
    LLM_RETURN_IF_ERROR(weights.Append(&weight, 1));
    for (const GramCount<N>& gram : grams) {
      if ((gram.count & kPruned) != 0) continue;
      SmoothedGram<N> smoothed;
      smoothed.words[0] = gram.words[N - 1];
      std::copy(gram.words, gram.words + N - 1, smoothed.words + 1);
      smoothed.probability = (static_cast<double>(gram.count) - discounts.Of(gram.count)) / sum;
      smoothed.weight = weight.value;
      LLM_RETURN_IF_ERROR(smoothed_->Add(smoothed));
    }
    return absl::OkStatus();
  }

  // Of the shorter n-gram with these last words, which is there: an n-gram is never rarer than a longer one.
  static absl::StatusOr<double> ValueAt(RecordStream<GramValue<N - 1>>& stream, const uint32_t* words) {
    while (stream.current() != nullptr && !std::equal(words, words + N - 1, stream.current()->words)) {
      LLM_RETURN_IF_ERROR(stream.Next());
    }
    CHECK(stream.current() != nullptr) << "the shorter n-gram is in the model";
    return stream.current()->value;
  }

  static absl::StatusOr<double> WeightAt(RecordStream<GramValue<N>>& stream, const GramValue<N>& gram) {
    while (stream.current() != nullptr && CompareWords<N>(stream.current()->words, gram.words) < 0) {
      LLM_RETURN_IF_ERROR(stream.Next());
    }
    const bool is_context = stream.current() != nullptr && CompareWords<N>(stream.current()->words, gram.words) == 0;
    return is_context ? stream.current()->value : 1.0;
  }

  const SmootherPlace place_;
  std::optional<ExternalSorter<GramCount<N>>> adjusted_;
  std::optional<ExternalSorter<SmoothedGram<N>>> smoothed_;
};

}  // namespace

std::unique_ptr<NgramSmoother> MakeNgramSmoother(int order, const SmootherPlace& place) {
  switch (order) {
    case 2: return std::make_unique<NgramSmootherOf<2>>(place);
    case 3: return std::make_unique<NgramSmootherOf<3>>(place);
    case 4: return std::make_unique<NgramSmootherOf<4>>(place);
    case 5: return std::make_unique<NgramSmootherOf<5>>(place);
    case 6: return std::make_unique<NgramSmootherOf<6>>(place);
    default: CHECK(false) << "settings are valid: order " << order;
  }
  return nullptr;
}

absl::StatusOr<std::vector<double>> ReadWordWeights(const SmootherPlace& place, uint32_t vocabulary) {
  LLM_ASSIGN_OR_RETURN(auto stream, RecordStream<GramValue<1>>::Open(*place.files, WeightsPath(place.folder, 1)));
  std::vector<double> weights(vocabulary, 1.0);
  for (; stream.current() != nullptr;) {
    weights[stream.current()->words[0]] = stream.current()->value;
    LLM_RETURN_IF_ERROR(stream.Next());
  }
  return weights;
}

}  // namespace llmctl::data
