// corpus.yaml as llm-data wants it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "llmctl/v1/corpus.pb.h"

namespace llmctl::client {

// As it was written. `file` "-" is standard input.
absl::StatusOr<v1::CorpusSpec> ReadCorpusFile(const std::string& file);

// The JSON of worker/contract/corpus_config.h: defaults applied, relative paths taken from `working_directory`.
std::string ResolvedCorpus(v1::CorpusSpec spec, const std::string& working_directory);

}  // namespace llmctl::client
