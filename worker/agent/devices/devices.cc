#include "worker/agent/devices/devices.h"

#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"

namespace llmctl::agent {
namespace {

constexpr int kCpuSlotsMax = 1024;

std::vector<Device> CpuSlots(int count) {
  int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  std::vector<Device> slots;
  for (int i = 0; i < count; ++i) {
    slots.push_back({.index = i, .kind = "cpu", .model = "cpu", .uuid = absl::StrCat("cpu-", i),
                     .memory_bytes = memory / count});
  }
  return slots;
}

}  // namespace

absl::StatusOr<std::vector<Device>> FindDevices(absl::string_view flag) {
  if (flag == "auto") {
    LLM_ASSIGN_OR_RETURN(std::vector<Device> gpus, FindGpus());
    return gpus.empty() ? CpuSlots(1) : gpus;
  }
  absl::string_view count_text = flag;
  int count = 0;
  if (absl::ConsumePrefix(&count_text, "cpu:") && absl::SimpleAtoi(count_text, &count) && count >= 1 &&
      count <= kCpuSlotsMax) {
    return CpuSlots(count);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--devices=", flag, ": expected auto, or cpu:N with N from 1 to ", kCpuSlotsMax));
}

}  // namespace llmctl::agent
