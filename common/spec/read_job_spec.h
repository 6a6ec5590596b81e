// job.yaml -> JobSpec: strict, complete, with places.
//
// A field that does not exist is an error and not ignored, a value of another type is not converted, and all
// faults of a file come in one message: "job.yaml:7:11: model.layers: found 010, expected a whole number from
// 1 to 1024; ...". Values are checked by the options of their fields in proto/llmctl/v1/job.proto and by the
// rules of validate.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "llmctl/v1/job.pb.h"

namespace llmctl::spec {

// The specification as it was written: without defaults (ApplyDefaults), paths as they are. `file` names it in
// messages. InvalidArgument lists every fault. Any bytes are fine as `text`: this is what is fuzzed.
absl::StatusOr<v1::JobSpec> ReadJobSpec(absl::string_view text, absl::string_view file);

}  // namespace llmctl::spec
