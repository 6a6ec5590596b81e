// corpus.yaml -> CorpusSpec: strict, complete, with places, as read_job_spec.h does it for jobs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "llmctl/v1/corpus.pb.h"

namespace llmctl::spec {

// The specification as it was written: without defaults, paths as they are. InvalidArgument lists every fault. Any
// bytes are fine as `text`.
absl::StatusOr<v1::CorpusSpec> ReadCorpusSpec(absl::string_view text, absl::string_view file);

// Fills in what was left out: the default_value of each field, and
//   quality     the four filters of the FineWeb dataset, if it names none
//   exactDedup  documents, if it names no unit
void ApplyCorpusDefaults(v1::CorpusSpec& spec);

// The `kind` that a specification says it is; empty if it says none that can be read.
std::string KindOf(absl::string_view text);

}  // namespace llmctl::spec
