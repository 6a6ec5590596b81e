#include "worker/data/shards/dataset_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/unigram_entropy.h"
#include "worker/data/shards/verify_once.h"

namespace llmctl::data {
namespace {

constexpr int64_t kPieceTokens = int64_t{1} << 20;
// Sums of the same terms in the same order agree far better; a wrong count does not.
constexpr double kEntropyTolerance = 1e-9;

// Counts each token; DataLoss for one outside the vocabulary.
absl::Status CountTokens(const ShardReader& reader, const std::string& path, std::vector<int64_t>& counts) {
  std::vector<int32_t> piece;
  for (int64_t at = 0; at < reader.tokens(); at += kPieceTokens) {
    piece.resize(std::min(kPieceTokens, reader.tokens() - at));
    reader.WillNeed(at, static_cast<int64_t>(piece.size()));
    reader.Copy(at, absl::MakeSpan(piece));
    for (size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] < 0 || piece[i] >= static_cast<int32_t>(counts.size())) {
        return absl::DataLossError(absl::StrCat(path, ": token ", at + i, " is ", piece[i], ", the vocabulary has ",
                                                counts.size(), "; prepare the dataset anew"));
      }
      ++counts[piece[i]];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyDataset(const std::string& directory) {
  LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, ReadManifest(directory));
  LLM_RETURN_IF_ERROR(VerifyFiles(directory, manifest));
  for (const SplitInfo& split : manifest.splits) {
    std::string stem = absl::StrCat(directory, "/", split.name);
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardReader> reader, ShardReader::Open(directory, split.name));
    std::vector<int64_t> counts(manifest.vocabulary_size);
    LLM_RETURN_IF_ERROR(CountTokens(*reader, stem + ".bin", counts));
    int64_t whole = split.documents - (split.packed.has_value() ? split.packed->truncated_documents : 0);
    if (counts[manifest.end_of_document] != whole) {
      return absl::DataLossError(absl::StrCat(stem, ".bin has ", counts[manifest.end_of_document],
                                              " end-of-document tokens, expected one for each of ", whole,
                                              " documents; prepare the dataset anew"));
    }
    double entropy = UnigramEntropy(counts);
    if (split.name == "train" && std::abs(entropy - manifest.unigram_entropy) > kEntropyTolerance) {
      return absl::DataLossError(absl::StrCat(directory, ": unigram entropy is ", entropy, ", the manifest says ",
                                              manifest.unigram_entropy, "; prepare the dataset anew"));
    }
  }
  return absl::OkStatus();
}

}  // namespace llmctl::data
