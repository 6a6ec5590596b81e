// A YAML tree as a specification: strict, with the place of everything.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/spec/fault.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace llmctl::spec {

// Reads `text` into `spec`, as it was written: without defaults. `check` adds the faults of what was read.
// InvalidArgument lists every fault, each with `file`, line and column. Any bytes are fine as `text`.
absl::Status ReadSpec(absl::string_view text, absl::string_view file, google::protobuf::Message& spec,
                      absl::FunctionRef<void(const Positions& given, FaultList& faults)> check);

}  // namespace llmctl::spec
