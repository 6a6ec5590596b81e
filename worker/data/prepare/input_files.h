// Which files --input means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace llmctl::data {

enum class InputFormat { kText, kJsonLines };

struct InputFile {
  std::string path;
  InputFormat format = InputFormat::kText;
  int64_t bytes = 0;
};

struct InputList {
  std::vector<InputFile> files;
  int64_t bytes = 0;
  std::vector<std::string> passed_over;  // found in folders or by globs, but neither .txt nor .jsonl
};

// Files, folders (searched in depth, links not followed) and globs, in the order given; what a folder or glob
// gives is sorted, and a file that is named twice is read once. `excluded_directory`, which need not exist, is
// not searched: an output folder inside its input would feed on itself. NotFound when one gives nothing;
// InvalidArgument for a file of another type that is named outright.
absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& inputs, const std::string& excluded_directory);

}  // namespace llmctl::data
