#include <string>

#include "common/base/check.h"
#include "common/spec/digest.h"
#include "common/spec/read_job_spec.h"
#include "tests/fuzz/target.h"

namespace llmctl::fuzz {
namespace {

void RunJobSpec(absl::string_view bytes) {
  absl::StatusOr<v1::JobSpec> spec = spec::ReadJobSpec(bytes, "job.yaml");
  if (spec.ok()) {
    CHECK_EQ(spec::SpecDigest(*spec).size(), 64u);
  } else {
    CHECK(!spec.status().message().empty());
  }
}

}  // namespace

std::vector<Target> SpecTargets() {
  return {{"job_spec",
           RunJobSpec,
           {"apiVersion: llmctl/v1\nkind: TrainingJob\nmetadata: {name: a}\nmodel:\n  architecture: llama\n"
            "  layers: 4\n  hiddenSize: 256\n  heads: 4\ndata:\n  dataset: /d\n  sequenceLength: 256\ntraining:\n  steps: 10\n"
            "  globalBatchSize: 16\n  optimizer: &o\n    learningRate: 2e-3\ncheckpoint:\n  directory: \"/c\"\n"}}};
}

}  // namespace llmctl::fuzz
