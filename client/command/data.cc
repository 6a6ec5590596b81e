#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/command/corpus_file.h"
#include "client/command/sibling.h"
#include "client/command/verbs.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

bool IsCorpusFile(const std::string& argument) {
  return argument == "-" || (!absl::StartsWith(argument, "-") &&
                             (absl::EndsWith(argument, ".yaml") || absl::EndsWith(argument, ".yml")));
}

// A file without a name that the program we become inherits.
absl::StatusOr<std::string> HandOver(const std::string& text) {
  int fd = ::memfd_create("corpus", 0);
  if (fd < 0) return ErrnoStatus(errno, "create a file in memory");
  // Into memory: all of it at once or not at all.
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, "write a file in memory");
  }
  return absl::StrCat("/proc/self/fd/", fd);
}

// llm-data reads no YAML: corpus.yaml becomes --spec.
absl::StatusOr<std::string> ResolveArgument(const std::string& file) {
  LLM_ASSIGN_OR_RETURN(v1::CorpusSpec spec, ReadCorpusFile(file));
  LLM_ASSIGN_OR_RETURN(std::string path,
                       HandOver(ResolvedCorpus(std::move(spec), std::filesystem::current_path().string())));
  return absl::StrCat("--spec=", path);
}

}  // namespace

absl::StatusOr<ExitCode> Data(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (!IsCorpusFile(argument)) continue;
    absl::StatusOr<std::string> resolved = ResolveArgument(argument);
    if (absl::IsInvalidArgument(resolved.status())) {
      std::cerr << resolved.status().message() << "\n";
      return ExitCode::kUsage;
    }
    LLM_ASSIGN_OR_RETURN(argument, std::move(resolved));
  }
  return ExecSibling("llm-data", arguments);
}

}  // namespace llmctl::client
