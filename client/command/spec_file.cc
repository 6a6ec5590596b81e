#include "client/command/spec_file.h"

#include <filesystem>
#include <iostream>
#include <iterator>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/spec/read_job_spec.h"

namespace llmctl::client {

absl::StatusOr<SpecText> ReadSpecText(const std::string& file) {
  if (file == "-") {
    return SpecText{"standard input", {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}};
  }
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
  return SpecText{file, std::move(text)};
}

absl::StatusOr<v1::JobSpec> ReadSpecFile(const std::string& file) {
  LLM_ASSIGN_OR_RETURN(SpecText text, ReadSpecText(file));
  return spec::ReadJobSpec(text.text, text.name);
}

void MakePathsAbsolute(const std::string& working_directory, v1::JobSpec& spec) {
  for (std::string* path : {spec.mutable_data()->mutable_dataset(), spec.mutable_checkpoint()->mutable_directory(),
                            spec.mutable_init_from()}) {
    if (path->empty()) continue;
    *path = (std::filesystem::path(working_directory) / *path).lexically_normal().string();
  }
}

}  // namespace llmctl::client
