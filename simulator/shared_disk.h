// The file system that all hosts mount: checkpoints, and the nonces of the checks before a start.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "common/base/ids.h"

namespace llmctl::simulator {

// Every host has the same under this path, and its own under that one.
inline constexpr char kSharedDirectory[] = "/ckpt";
inline constexpr char kLocalDirectory[] = "/local";

struct SharedDisk {
  std::set<std::string> checkpoints;  // paths that are complete on disk
  std::set<std::string> nonces;
};

// Where a generation writes its checkpoint of a step.
std::string CheckpointPath(const GenerationId& writer, int64_t step);

// What a simulated trainer does, as the job's opaque specification says.
struct Workload {
  int steps = 10;
  int checkpoint_every = 5;
  int step_milliseconds = 1000;
};
std::string EncodeWorkload(const Workload& workload);
Workload DecodeWorkload(const std::string& spec);

}  // namespace llmctl::simulator
