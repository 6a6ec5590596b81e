// The tokenizer of a dataset travels with it: a copy of its tokenizer.json lies in the folder, and the manifest says
// which ids it must give.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/data/shards/dataset.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

inline constexpr char kDatasetTokenizerName[] = "tokenizer.json";

// DataLoss if it is not the one that the dataset was made with.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenDatasetTokenizer(const std::string& directory,
                                                                const DatasetManifest& manifest);

}  // namespace llmctl::data
