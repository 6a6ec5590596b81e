#include "client/command/spec_file.h"
#include "client/command/verbs.h"
#include "common/base/status.h"
#include "common/spec/read_corpus_spec.h"
#include "common/spec/read_job_spec.h"

namespace llmctl::client {
namespace {

absl::Status ValidateFile(const std::string& file) {
  LLM_ASSIGN_OR_RETURN(SpecText text, ReadSpecText(file));
  if (spec::KindOf(text.text) == "Corpus") return spec::ReadCorpusSpec(text.text, text.name).status();
  return spec::ReadJobSpec(text.text, text.name).status();
}

}  // namespace

absl::StatusOr<ExitCode> Validate(const std::vector<std::string>& files, Session& session) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : files) {
    absl::Status status = ValidateFile(file);
    if (status.ok()) {
      session.out << file << ": valid\n";
    } else {
      session.err << status.message() << "\n";
      code = ExitCode::kUsage;
    }
  }
  return code;
}

}  // namespace llmctl::client
