#include "worker/agent/host/allowed_roots.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace llmctl::agent {
namespace {

// With the links of the part that exists resolved; a checkpoint directory may not be there yet.
std::string Resolve(const std::string& path) {
  std::error_code error;
  std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  if (error) return "";
  std::string text = resolved.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool LiesBelow(const std::string& path, const std::string& root) {
  if (root == "/" || path == root) return !path.empty();
  return path.size() > root.size() && path.compare(0, root.size(), root) == 0 && path[root.size()] == '/';
}

}  // namespace

AllowedRoots::AllowedRoots(absl::string_view colon_separated) {
  for (absl::string_view root : absl::StrSplit(colon_separated, ':', absl::SkipEmpty())) {
    roots_.push_back(Resolve(std::string(root)));
  }
}

absl::Status AllowedRoots::Check(const std::string& path) const {
  if (path.empty() || path[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat("path \"", path, "\": expected an absolute path"));
  }
  if (roots_.empty()) return absl::OkStatus();
  std::string resolved = Resolve(path);
  for (const std::string& root : roots_) {
    if (!root.empty() && LiesBelow(resolved, root)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("path ", path, " is not below the roots this host allows (",
                                                  absl::StrJoin(roots_, ", "),
                                                  "): move it there or start llm-worker with other --allowed-roots"));
}

}  // namespace llmctl::agent
