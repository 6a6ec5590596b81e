// What a host offers to trainers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::agent {

struct Device {
  int index = 0;
  std::string kind;   // "cpu", "cuda"
  std::string model;  // "NVIDIA H200", "cpu"
  std::string uuid;
  int64_t memory_bytes = 0;
};

// --devices: "cpu:N" gives N slots that share this host's cores and memory; "auto" its GPUs, or without any
// "cpu:1".
absl::StatusOr<std::vector<Device>> FindDevices(absl::string_view flag);

// The GPUs that the driver knows; empty if there is no driver. One of nvml.cc, no_nvml.cc.
absl::StatusOr<std::vector<Device>> FindGpus();

}  // namespace llmctl::agent
