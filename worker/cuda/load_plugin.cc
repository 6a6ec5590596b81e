#include "worker/cuda/nccl.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace llmctl::cuda {
namespace {

// The plug-in lies beside the program.
absl::StatusOr<CreateNcclBackendFunction*> LoadPlugin() {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string path = (program.parent_path() / "libllm_cuda.so").string();
  // Never closed: LibTorch's libraries do not survive unloading.
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("load the CUDA plug-in (LibTorch's CUDA libraries must be installed): ", dlerror()));
  }
  void* symbol = dlsym(plugin, kCreateNcclBackendSymbol);
  if (symbol == nullptr) {
    return absl::UnavailableError(absl::StrCat(path, " is of another build: it has no ", kCreateNcclBackendSymbol));
  }
  return reinterpret_cast<CreateNcclBackendFunction*>(symbol);
}

}  // namespace

absl::StatusOr<std::unique_ptr<engine::comm::Backend>> CreateNcclBackend(const NcclOptions& options) {
  absl::StatusOr<CreateNcclBackendFunction*> create = LoadPlugin();
  if (!create.ok()) return create.status();
  std::string error;
  std::unique_ptr<engine::comm::Backend> backend((*create)(options, error));
  if (backend != nullptr) return backend;
  return absl::UnavailableError(absl::StrCat("form NCCL group ", options.group, " of ", options.size,
                                             " ranks as rank ", options.rank, " on GPU ", options.device, ": ", error));
}

}  // namespace llmctl::cuda
