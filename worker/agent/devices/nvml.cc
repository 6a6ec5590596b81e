// GPUs by NVML. The library comes with the driver, so it is looked for at run time.
#include <dlfcn.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <nvml.h>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "worker/agent/devices/devices.h"

namespace llmctl::agent {
namespace {

// The entry points in use, by the types of the header.
struct Nvml {
  decltype(&nvmlInit_v2) init = nullptr;
  decltype(&nvmlShutdown) shutdown = nullptr;
  decltype(&nvmlErrorString) error_string = nullptr;
  decltype(&nvmlDeviceGetCount_v2) count = nullptr;
  decltype(&nvmlDeviceGetHandleByIndex_v2) handle = nullptr;
  decltype(&nvmlDeviceGetName) name = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
};

bool Load(void* library, Nvml& nvml) {
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  return find(nvml.init, "nvmlInit_v2") && find(nvml.shutdown, "nvmlShutdown") &&
         find(nvml.error_string, "nvmlErrorString") && find(nvml.count, "nvmlDeviceGetCount_v2") &&
         find(nvml.handle, "nvmlDeviceGetHandleByIndex_v2") && find(nvml.name, "nvmlDeviceGetName") &&
         find(nvml.uuid, "nvmlDeviceGetUUID") && find(nvml.memory, "nvmlDeviceGetMemoryInfo");
}

absl::StatusOr<Device> Describe(const Nvml& nvml, unsigned index) {
  nvmlDevice_t handle;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
  char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
  nvmlMemory_t memory = {};
  nvmlReturn_t status = nvml.handle(index, &handle);
  if (status == NVML_SUCCESS) status = nvml.name(handle, name, sizeof name);
  if (status == NVML_SUCCESS) status = nvml.uuid(handle, uuid, sizeof uuid);
  if (status == NVML_SUCCESS) status = nvml.memory(handle, &memory);
  if (status != NVML_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("GPU ", index, ": NVML says ", nvml.error_string(status)));
  }
  return Device{.index = static_cast<int>(index),
                .kind = "cuda",
                .model = name,
                .uuid = uuid,
                .memory_bytes = static_cast<int64_t>(memory.total)};
}

absl::StatusOr<std::vector<Device>> DescribeAll(const Nvml& nvml) {
  unsigned count = 0;
  nvmlReturn_t status = nvml.count(&count);
  if (status != NVML_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("count GPUs: NVML says ", nvml.error_string(status)));
  }
  std::vector<Device> devices;
  for (unsigned i = 0; i < count; ++i) {
    absl::StatusOr<Device> device = Describe(nvml, i);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::vector<Device>> FindGpus() {
  std::unique_ptr<void, int (*)(void*)> library(::dlopen("libnvidia-ml.so.1", RTLD_NOW), &::dlclose);
  Nvml nvml;
  if (library == nullptr) return std::vector<Device>();
  if (!Load(library.get(), nvml)) {
    return absl::FailedPreconditionError("libnvidia-ml.so.1 lacks functions of NVML 11: update the NVIDIA driver");
  }
  nvmlReturn_t status = nvml.init();
  // The library without a driver or a GPU, as in many container images.
  if (status == NVML_ERROR_DRIVER_NOT_LOADED || status == NVML_ERROR_LIBRARY_NOT_FOUND) return std::vector<Device>();
  if (status != NVML_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("initialise NVML: ", nvml.error_string(status)));
  }
  absl::StatusOr<std::vector<Device>> devices = DescribeAll(nvml);
  nvml.shutdown();
  return devices;
}

}  // namespace llmctl::agent
