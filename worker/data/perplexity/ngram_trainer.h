// Estimates an n-gram language model from text: interpolated modified Kneser-Ney, as in Chen & Goodman, "An empirical
// study of smoothing techniques for language modeling" (1999), section 3, and KenLM's lmplz (Heafield et al., "Scalable
// modified Kneser-Ney language model estimation", 2013), whose probabilities these are.
//
//   c(g)      how often an n-gram g stands in the text, each line between <s> and </s>
//   a(g)      c(g) if g is of the highest order or begins with <s>; else how many different words stand before it
//   D(k)      discount for a(g) = 1, 2, 3 and more: k - (k+1) Y t(k+1) / t(k), Y = t(1) / (t(1) + 2 t(2)), where t(k)
//             is how many n-grams of the order have a(g) = k
//   p(w|h)    (a(hw) - D(a(hw))) / A(h) + b(h) p(w|h without its first word),   A(h): the sum of a(hx) for all x
//   b(h)      the sum of D(a(hx)) for all x, / A(h)
//   p(w)      the same with the uniform 1 / (words + <unk> + </s>) as what is below; <unk> has a = 0
//
// Where D cannot be had (t(k) is 0, or D is below 0 or above k) the fall-back discounts are taken, and a warning says
// so. N-grams whose c is at most the order's prune threshold are left out; what they had goes into b(h).
//
// Memory: `memory_bytes`, half of it for sorting, half for the vocabulary (a word has 96 bytes and its letters) and the
// n-grams of one context; disk: about 4 order + 8 bytes for each word of text and twice as much again while the model
// is made.
// The result depends on the text and its order and on nothing else: word ids, and so the order of lines in the file,
// follow the first occurrence.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/perplexity/model_text.h"
#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

struct NgramTrainSettings {
  int order = 5;  // 1 to 6
  // Per order from 1 on, the last for all higher ones: n-grams that stand in the text at most so often are left out.
  // Not falling; 1-grams stay, so the first is 0.
  std::vector<uint64_t> prune = {0};
  // lmplz's default. False: what 1-grams give up goes to <unk>, as SRILM does it.
  bool interpolate_unigrams = true;
  std::array<double, 3> discount_fallback = {0.5, 1, 1.5};
  uint64_t memory_bytes = uint64_t{1} << 30;

  // All faults in one message.
  absl::Status Validate() const;
};

struct NgramOrderReport {
  uint64_t distinct = 0;  // n-grams, those included that were pruned
  uint64_t kept = 0;
  std::array<double, 3> discounts{};
  bool fallback = false;
};

struct NgramTrainReport {
  uint64_t lines = 0;
  uint64_t words = 0;            // without <s> and </s>
  uint64_t vocabulary = 0;       // with <s>, </s> and <unk>
  uint64_t specials_skipped = 0; // "<s>", "</s>" or "<unk>" in the text: not words
  std::vector<NgramOrderReport> orders;
  std::vector<std::string> warnings;  // to be shown
};

// What is being done, for a progress line: counting first, then each order twice.
struct NgramTrainProgress {
  absl::string_view step;  // "count", "adjust", "smooth", "write"
  int order = 0;           // 0 while counting
  uint64_t done = 0;       // n-grams; while counting, words of text
};
using NgramTrainObserver = std::function<void(const NgramTrainProgress&)>;

class NgramTrainer {
 public:
  // Files go to `folder`, which the trainer empties now and removes when it is done. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<NgramTrainer>> Create(const NgramTrainSettings& settings, SpillFiles& files,
                                                              std::string folder);
  virtual ~NgramTrainer() = default;

  // One line, a sentence. ResourceExhausted when the vocabulary outgrows its memory.
  virtual absl::Status AddLine(absl::Span<const absl::string_view> words) = 0;
  // All lines of a document.
  absl::Status AddDocument(ModelTextReader& reader, absl::string_view document);

  // Words of text so far.
  virtual uint64_t words() const = 0;

  // Once, at the end: writes the model to `path` (gzip-compressed if it ends in .gz), under a temporary name until it
  // is whole. FailedPrecondition if no word was added.
  virtual absl::StatusOr<NgramTrainReport> WriteArpa(const std::string& path,
                                                     const NgramTrainObserver& observer = nullptr) = 0;

 private:
  std::vector<absl::string_view> line_;
};

// All of it: a model of all documents that `next` gives (false: there is none any more).
//
//   auto report = TrainNgramModel({.path = "en.arpa.gz", .folder = "work/lm"}, files, next, observer);
struct NgramTrainJob {
  std::string path;
  std::string folder;  // for files that mean nothing afterwards
  NgramTrainSettings training;
  ModelTextSettings text;
  const BpeTokenizer* tokenizer = nullptr;  // for pieces
};
absl::StatusOr<NgramTrainReport> TrainNgramModel(const NgramTrainJob& job, SpillFiles& files,
                                                 absl::FunctionRef<absl::StatusOr<bool>(std::string& document)> next,
                                                 const NgramTrainObserver& observer = nullptr);

}  // namespace llmctl::data
