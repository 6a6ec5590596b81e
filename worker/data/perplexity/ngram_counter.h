// From lines of word ids to the adjusted counts of the n-grams of all orders (ngram_trainer.h says what those are).
//
// Only n-grams of the highest order are counted and sorted, each line with order - 1 times <s> before it. Read in
// order, those with the same ending stand together, so shorter n-grams come by as endings: how many words stand before
// one is how often the n-gram longer by a word changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

#include "worker/data/spill/external_sort.h"

namespace llmctl::data {

// An n-gram with its count and its adjusted count; `words` from the last to the first.
struct AdjustedGram {
  int order;
  const uint32_t* words;
  uint64_t count;
  uint64_t adjusted;
};

class NgramCounter {
 public:
  virtual ~NgramCounter() = default;
  // One line, without <s> and </s>.
  virtual absl::Status AddLine(absl::Span<const uint32_t> words) = 0;
  // Once, at the end: every n-gram of every order. <unk> and <s>, which have no count, are not among them.
  virtual absl::Status Finish(absl::FunctionRef<absl::Status(const AdjustedGram&)> emit) = 0;
};

// `order` from 1 to 6.
std::unique_ptr<NgramCounter> MakeNgramCounter(int order, const TaskResources& resources, const std::string& folder);

}  // namespace llmctl::data
