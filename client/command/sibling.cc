#include "client/command/sibling.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::client {

absl::StatusOr<std::string> FindSibling(const std::string& name) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "read /proc/self/exe");
  std::filesystem::path path = self.parent_path() / name;
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("expected the program ", name, " beside ", self.string(),
                                            ", found none that can be run: build or install it there"));
  }
  return path.string();
}

absl::Status ExecSibling(const std::string& name, const std::vector<std::string>& arguments) {
  LLM_ASSIGN_OR_RETURN(std::string path, FindSibling(name));
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  return ErrnoStatus(errno, absl::StrCat("run ", path));
}

}  // namespace llmctl::client
