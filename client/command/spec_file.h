// Specifications from files, and job specifications ready to be sent.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "llmctl/v1/job.pb.h"

namespace llmctl::client {

struct SpecText {
  std::string name;  // for messages
  std::string text;
};
// "-" is standard input.
absl::StatusOr<SpecText> ReadSpecText(const std::string& file);

// Reads and validates `file` ("-" is standard input). InvalidArgument lists the faults, a line each, and is
// meant to be printed as it is.
absl::StatusOr<v1::JobSpec> ReadSpecFile(const std::string& file);

// The coordinator does not know our working directory: relative paths become absolute.
void MakePathsAbsolute(const std::string& working_directory, v1::JobSpec& spec);

}  // namespace llmctl::client
