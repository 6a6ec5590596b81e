// From text to shingles: 64-bit hashes of every `shingle_words` consecutive words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/dedup/fold_table.h"
#include "worker/data/dedup/signature_kernels.h"

namespace llmctl::data {

// Appends the words of `text`, as pieces of it, to `words`. Called for pieces of a document that were cut at white
// space, from any thread.
using SplitWords = std::function<void(absl::string_view text, std::vector<absl::string_view>& words)>;

// What the calls of one thread reuse; under 100 KB in the fast recipe, some 20 bytes per byte of the longest run
// without white space (64 KB at least) in datatrove's.
struct ShingleScratch {
  std::vector<uint64_t> word_hashes;
  std::vector<uint64_t> shingles;
  std::string joined;
  std::vector<absl::string_view> words;
  std::vector<size_t> starts;
};

// Const after construction, safe from any thread.
class ShingleSource {
 public:
  using Sink = absl::FunctionRef<void(absl::Span<const uint64_t> shingles)>;

  virtual ~ShingleSource() = default;

  // Hands the shingles on in blocks, repeated ones too, and returns how many words the text has.
  virtual int64_t Read(absl::string_view text, ShingleScratch& scratch, Sink sink) const = 0;
};

// word_hasher.h, a block of words at a time.
class FastShingles : public ShingleSource {
 public:
  FastShingles(int shingle_words, const SignatureKernels& kernels)
      : shingle_words_(shingle_words), kernels_(kernels) {}

  int64_t Read(absl::string_view text, ShingleScratch& scratch, Sink sink) const override;

 private:
  size_t shingle_words_;
  const SignatureKernels& kernels_;
  FoldTable characters_;
};

}  // namespace llmctl::data
