// Whether a dataset on disk is what its manifest says: every byte is read.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace llmctl::data {

// DataLoss names the first file that is damaged, with what was expected and found.
absl::Status VerifyDataset(const std::string& directory);

}  // namespace llmctl::data
