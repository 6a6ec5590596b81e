#include "worker/data/shards/dataset_tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenDatasetTokenizer(const std::string& directory,
                                                                const DatasetManifest& manifest) {
  // Datasets older than the digest name the file where it was when they were made.
  const std::string& name = manifest.tokenizer;
  bool inside = absl::EndsWith(name, ".json") && !absl::StartsWith(name, "/") && !manifest.tokenizer_digest.empty();
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      MakeTokenizer(inside ? absl::StrCat(directory, "/", name) : name);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), "tokenizer of dataset ", directory);
  bool same = manifest.tokenizer_digest.empty() || (*tokenizer)->digest() == manifest.tokenizer_digest;
  if (same && (*tokenizer)->vocabulary_size() == manifest.vocabulary_size) return tokenizer;
  return absl::DataLossError(absl::StrCat("tokenizer ", name, " of dataset ", directory, " has digest ",
                                          (*tokenizer)->digest(), " and a vocabulary of ",
                                          (*tokenizer)->vocabulary_size(), ", the manifest says ",
                                          manifest.tokenizer_digest, " and ", manifest.vocabulary_size,
                                          "; put back the file that the dataset was made with"));
}

}  // namespace llmctl::data
