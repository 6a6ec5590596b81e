#include "client/command/corpus_file.h"

#include <filesystem>

#include "client/command/spec_file.h"
#include "client/output/json_view.h"
#include "common/base/status.h"
#include "common/spec/read_corpus_spec.h"

namespace llmctl::client {

absl::StatusOr<v1::CorpusSpec> ReadCorpusFile(const std::string& file) {
  LLM_ASSIGN_OR_RETURN(SpecText text, ReadSpecText(file));
  return spec::ReadCorpusSpec(text.text, text.name);
}

std::string ResolvedCorpus(v1::CorpusSpec spec, const std::string& working_directory) {
  spec::ApplyCorpusDefaults(spec);
  auto make_absolute = [&](std::string& path) {
    // A scheme (s3://) says where it is.
    if (path.empty() || path.find("://") != std::string::npos) return;
    path = (std::filesystem::path(working_directory) / path).lexically_normal().string();
  };
  make_absolute(*spec.mutable_output());
  for (v1::CorpusSource& source : *spec.mutable_sources()) {
    for (std::string& path : *source.mutable_paths()) make_absolute(path);
  }
  if (spec.tokenizer() != "byte") make_absolute(*spec.mutable_tokenizer());
  if (spec.has_language()) make_absolute(*spec.mutable_language()->mutable_model());
  if (spec.has_perplexity()) {
    make_absolute(*spec.mutable_perplexity()->mutable_tokenizer());
    for (v1::PerplexityModel& model : *spec.mutable_perplexity()->mutable_models()) {
      make_absolute(*model.mutable_arpa());
    }
  }
  if (spec.has_pii()) make_absolute(*spec.mutable_pii()->mutable_key_file());
  nlohmann::ordered_json out = ToContractJson(spec);
  for (const char* name : {"api_version", "kind", "metadata"}) out.erase(name);
  out["name"] = spec.metadata().name();
  return out.dump(2);
}

}  // namespace llmctl::client
