#include "simulator/shared_disk.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"

namespace llmctl::simulator {

std::string CheckpointPath(const GenerationId& writer, int64_t step) {
  return absl::StrCat(kSharedDirectory, "/", writer.job.value(), "/step-", step, "-g", writer.generation);
}

std::string EncodeWorkload(const Workload& workload) {
  return absl::StrCat(workload.steps, " ", workload.checkpoint_every, " ", workload.step_milliseconds);
}

Workload DecodeWorkload(const std::string& spec) {
  std::vector<std::string> parts = absl::StrSplit(spec, ' ');
  Workload workload;
  CHECK_EQ(parts.size(), 3u) << "not a workload: " << spec;
  CHECK(absl::SimpleAtoi(parts[0], &workload.steps) && absl::SimpleAtoi(parts[1], &workload.checkpoint_every) &&
        absl::SimpleAtoi(parts[2], &workload.step_milliseconds))
      << "not a workload: " << spec;
  return workload;
}

}  // namespace llmctl::simulator
