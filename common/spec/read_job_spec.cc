#include "common/spec/read_job_spec.h"

#include "common/base/status.h"
#include "common/spec/bind_yaml.h"
#include "common/spec/validate.h"

namespace llmctl::spec {

absl::StatusOr<v1::JobSpec> ReadJobSpec(absl::string_view text, absl::string_view file) {
  v1::JobSpec spec;
  LLM_RETURN_IF_ERROR(ReadSpec(text, file, spec, [&](const Positions& given, FaultList& faults) {
    AddJobSpecFaults(spec, ValidateOptions{}, given, faults);
  }));
  return spec;
}

}  // namespace llmctl::spec
