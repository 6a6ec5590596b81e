#include "worker/data/perplexity/ngram_counter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/perplexity/ngram_records.h"
#include "worker/data/perplexity/ngram_vocabulary.h"

namespace llmctl::data {
namespace {

template <int N>
class Adjuster {
 public:
  using Emit = absl::FunctionRef<absl::Status(const AdjustedGram&)>;
  explicit Adjuster(Emit emit) : emit_(emit) {}

  // N-grams of the highest order, sorted, each once.
  absl::Status Take(const GramCount<N>& gram) {
    int same = 0;
    if (last_.has_value()) {
      while (same < N && gram.words[same] == last_->words[same]) ++same;
    }
    LLM_RETURN_IF_ERROR(Close(same));
    last_ = gram;
    // The longest n-gram it stands for: what is before the first <s> is padding.
    int longest = 1;
    while (longest < N && gram.words[longest - 1] != kBeginId) ++longest;
    for (int order = same + 1; order <= longest; ++order) {
      open_[order - 1] = {};
      if (order > 1) ++open_[order - 2].before;
    }
    opened_ = longest;
    for (int order = 1; order <= longest; ++order) open_[order - 1].count += gram.count;
    // An n-gram of the highest order, or one that begins with <s>, has nothing before it: its count is what counts.
    open_[longest - 1].before = open_[longest - 1].count;
    return absl::OkStatus();
  }

  // Gives away the n-grams with more than `order` words.
  absl::Status Close(int order) {
    for (; opened_ > order; --opened_) {
      const Open& open = open_[opened_ - 1];
      LLM_RETURN_IF_ERROR(emit_({opened_, last_->words, open.count, open.before}));
    }
    return absl::OkStatus();
  }

 private:
  struct Open {
    uint64_t count = 0;
    uint64_t before = 0;  // different words before it
  };

  Emit emit_;
  std::optional<GramCount<N>> last_;
  Open open_[N];    // endings of last_, by words - 1
  int opened_ = 0;  // those up to here
};

template <int N>
class NgramCounterOf : public NgramCounter {
 public:
  NgramCounterOf(const TaskResources& resources, const std::string& folder)
      : sorter_({resources, folder, GramFileType(sizeof(GramCount<N>))}) {}

  absl::Status AddLine(absl::Span<const uint32_t> words) override {
    GramCount<N> gram;
    std::fill(gram.words, gram.words + N, kBeginId);
    gram.count = 1;
    auto add = [&](uint32_t word) {
      for (int i = N - 1; i > 0; --i) gram.words[i] = gram.words[i - 1];
      gram.words[0] = word;
      return sorter_.Add(gram);
    };
    for (uint32_t word : words) LLM_RETURN_IF_ERROR(add(word));
    return add(kEndId);
  }

  absl::Status Finish(absl::FunctionRef<absl::Status(const AdjustedGram&)> emit) override {
    Adjuster<N> adjuster(emit);
    std::optional<GramCount<N>> held;
    LLM_RETURN_IF_ERROR(sorter_.Finish([&](const GramCount<N>& gram) -> absl::Status {
      if (held.has_value() && !(*held < gram)) {
        held->Absorb(gram);
        return absl::OkStatus();
      }
      if (held.has_value()) LLM_RETURN_IF_ERROR(adjuster.Take(*held));
      held = gram;
      return absl::OkStatus();
    }));
    if (held.has_value()) LLM_RETURN_IF_ERROR(adjuster.Take(*held));
    return adjuster.Close(0);
  }

 private:
  ExternalSorter<GramCount<N>> sorter_;
};

}  // namespace

std::unique_ptr<NgramCounter> MakeNgramCounter(int order, const TaskResources& resources, const std::string& folder) {
  switch (order) {
    case 1: return std::make_unique<NgramCounterOf<1>>(resources, folder);
    case 2: return std::make_unique<NgramCounterOf<2>>(resources, folder);
    case 3: return std::make_unique<NgramCounterOf<3>>(resources, folder);
    case 4: return std::make_unique<NgramCounterOf<4>>(resources, folder);
    case 5: return std::make_unique<NgramCounterOf<5>>(resources, folder);
    case 6: return std::make_unique<NgramCounterOf<6>>(resources, folder);
    default: CHECK(false) << "settings are valid: order " << order;
  }
  return nullptr;
}

}  // namespace llmctl::data
