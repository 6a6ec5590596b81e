// A dataset to look at: its documents by number, a few at random, how long they are.
//
//   LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetView> view, DatasetView::Open(directory));
//   LLM_ASSIGN_OR_RETURN(std::vector<int64_t> some, view->Sample("train", 5, /*seed=*/1));
//
// In a packed dataset what is numbered are pieces, in the order of the rows: documents, but for those that were cut.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/shards/dataset.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

// Lengths in tokens. Memory does not depend on how many there are.
class LengthCounts {
 public:
  void Add(int64_t length);

  int64_t count() const { return count_; }
  int64_t total() const { return total_; }
  int64_t least() const { return least_; }
  int64_t largest() const { return largest_; }
  // The length that a share of `quantile` does not exceed, at most 1/16 too large; exact below 32.
  int64_t Quantile(double quantile) const;

  struct Bar {
    int64_t begin = 0;  // a power of two
    int64_t end = 0;
    int64_t count = 0;
    int64_t tokens = 0;
  };
  // Powers of two from the one of the shortest to the one of the longest.
  std::vector<Bar> Histogram() const;

 private:
  static constexpr int kParts = 16;  // of an octave
  std::array<int64_t, 64 * kParts> parts_ = {};
  std::array<int64_t, 64> tokens_ = {};
  int64_t count_ = 0;
  int64_t total_ = 0;
  int64_t least_ = 0;
  int64_t largest_ = 0;
};

// Constant after construction.
class DatasetView {
 public:
  static absl::StatusOr<std::unique_ptr<DatasetView>> Open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const DatasetManifest& manifest() const { return manifest_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // InvalidArgument if there is no split of this name.
  absl::StatusOr<const ShardReader*> Split(const std::string& split) const;

  // InvalidArgument if there is no such document; DataLoss if it has a token outside the vocabulary.
  absl::StatusOr<std::vector<int32_t>> Tokens(const std::string& split, int64_t document) const;
  // Without the end-of-document token.
  absl::StatusOr<std::string> Text(const std::string& split, int64_t document) const;
  // `count` different documents, or all if there are fewer: the same for the same seed and dataset.
  absl::StatusOr<std::vector<int64_t>> Sample(const std::string& split, int64_t count, uint64_t seed) const;
  // Reads the index through.
  absl::StatusOr<LengthCounts> Lengths(const std::string& split) const;

 private:
  DatasetView(std::string directory, DatasetManifest manifest, std::unique_ptr<Tokenizer> tokenizer);

  const std::string directory_;
  const DatasetManifest manifest_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::map<std::string, std::unique_ptr<ShardReader>> splits_;
};

// At most `characters` code points of the start of `text` on one line: line ends and tabs as \n and \t, other control
// characters as \xHH; "..." where it was cut.
std::string Excerpt(absl::string_view text, size_t characters);

}  // namespace llmctl::data
