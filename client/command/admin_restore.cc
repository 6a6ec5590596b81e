#include "absl/strings/str_cat.h"

#include "client/command/sibling.h"
#include "client/command/verbs.h"
#include "client/local/cluster_directory.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> AdminRestore(const RestoreOptions& options) {
  std::string data_directory = options.data_directory;
  if (data_directory.empty()) {
    data_directory = ClusterDirectory(options.local_directory).data_directory("coordinator");
  }
  std::vector<std::string> arguments{absl::StrCat("--restore=", options.file),
                                     absl::StrCat("--data-dir=", data_directory)};
  if (options.force) arguments.push_back("--force");
  return ExecSibling("llm-coordinator", arguments);
}

}  // namespace llmctl::client
