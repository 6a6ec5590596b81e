// Small tar archives in memory (POSIX ustar): what evidence bundles are, so that any tar can unpack them.
//
// Only what such a bundle needs: plain files with relative names of at most 100 characters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl::archive {

struct File {
  std::string name;
  std::string content;
  bool operator==(const File&) const = default;
};

std::string WriteTar(const std::vector<File>& files, absl::Time modified);

// DataLoss: not an archive of this kind, damaged, or cut. Names that lead out of a folder are refused.
absl::StatusOr<std::vector<File>> ReadTar(absl::string_view bytes);

}  // namespace llmctl::archive
