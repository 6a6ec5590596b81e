#include "client/command/spec_file.h"
#include "client/command/verbs.h"

namespace llmctl::client {

absl::StatusOr<ExitCode> Validate(const std::vector<std::string>& files, Session& session) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : files) {
    absl::StatusOr<v1::JobSpec> spec = ReadSpecFile(file);
    if (spec.ok()) {
      session.out << file << ": valid\n";
    } else {
      session.err << spec.status().message() << "\n";
      code = ExitCode::kUsage;
    }
  }
  return code;
}

}  // namespace llmctl::client
