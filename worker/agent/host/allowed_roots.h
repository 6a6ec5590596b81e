// Where jobs may read and write on this host (--allowed-roots).
//
// A path is allowed if, symbolic links resolved, it lies below one of the roots; without roots every path is.
// The trainer runs as the agent's user: this keeps a job's own fields inside the fence, it is no sandbox.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl::agent {

class AllowedRoots {
 public:
  // "A:B"; empty: no restriction. Roots that do not exist yet count by name.
  explicit AllowedRoots(absl::string_view colon_separated);

  // PermissionDenied names the path and the roots.
  absl::Status Check(const std::string& path) const;

 private:
  std::vector<std::string> roots_;
};

}  // namespace llmctl::agent
