#include "client/command/sibling.h"
#include "client/command/verbs.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Data(const std::vector<std::string>& arguments) { return ExecSibling("llm-data", arguments); }

}  // namespace llmctl::client
