#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "worker/data/read/parquet_file.h"

namespace llmctl::data {

// The plug-in lies beside the program.
absl::StatusOr<OpenParquetFunction*> LoadParquetPlugin() {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string path = (program.parent_path() / "libllm_parquet.so").string();
  // Never closed: Arrow's libraries do not survive unloading. Loading it again gives the same.
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "load the Parquet plug-in (it is built with Arrow's libraries, which deploy/setup.sh installs): ", dlerror()));
  }
  void* symbol = dlsym(plugin, kOpenParquetSymbol);
  if (symbol == nullptr) {
    return absl::UnavailableError(absl::StrCat(path, " is of another build: it has no ", kOpenParquetSymbol));
  }
  return reinterpret_cast<OpenParquetFunction*>(symbol);
}

}  // namespace llmctl::data
