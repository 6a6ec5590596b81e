// The programs that are installed beside llmctl.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llmctl::client {

// The path of the program `name` in the folder of the running program. NotFound if it is not there.
absl::StatusOr<std::string> FindSibling(const std::string& name);

// Becomes `name` with these arguments; returns only if that is not possible.
absl::Status ExecSibling(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace llmctl::client
