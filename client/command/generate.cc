#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "client/command/sibling.h"
#include "client/command/verbs.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

absl::Status ExpectFolder(const std::string& path, absl::string_view what, const std::string& job) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("generate from job ", job, ": expected its ", what, " at ", path,
                                          ", found no such folder on this machine: run this where it is mounted"));
}

void AddFlag(const std::string& name, const std::string& value, std::vector<std::string>& arguments) {
  if (!value.empty()) arguments.push_back(absl::StrCat("--", name, "=", value));
}

}  // namespace

absl::StatusOr<ExitCode> Generate(const GenerateOptions& options, Session& session) {
  v1::GetJobRequest request;
  request.set_id(options.job);
  LLM_ASSIGN_OR_RETURN(v1::Job job, session.cluster.GetJob(request));
  const std::string& checkpoint = job.checkpoint().path();
  if (checkpoint.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("generate from job ", job.id(),
                                                      ": expected a committed checkpoint, found none yet"));
  }
  LLM_RETURN_IF_ERROR(ExpectFolder(checkpoint, "checkpoint", job.id()));
  LLM_RETURN_IF_ERROR(ExpectFolder(job.spec().data().dataset(), "dataset", job.id()));
  std::vector<std::string> arguments{"generate", absl::StrCat("--checkpoint=", checkpoint),
                                     absl::StrCat("--dataset=", job.spec().data().dataset())};
  AddFlag("prompt", options.prompt, arguments);
  AddFlag("tokens", options.tokens, arguments);
  AddFlag("temperature", options.temperature, arguments);
  AddFlag("seed", options.seed, arguments);
  return ExecSibling("llm-trainer", arguments);
}

}  // namespace llmctl::client
