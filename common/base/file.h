// Whole files: never half written for whoever reads them, and, but for ReplaceFile, on disk when the call returns.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces `path` as a whole: temporary file beside it, fsync, rename, fsync of the folder. A crash leaves
// the old content or the new, never a mixture.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// The same without fsync, for what means nothing once the machine has lost its power: a crash of this process leaves
// the old content or the new, a power loss may leave an empty file.
absl::Status ReplaceFile(const std::string& path, absl::string_view content);

// fsync of a folder, so that names made or removed in it survive a power loss.
absl::Status SyncDirectory(const std::string& path);

// Creates `path` and its parents; fine if it exists as a folder.
absl::Status MakeDirectories(const std::string& path);

// The same, and the names of those that it made survive a power loss.
absl::Status MakeDirectoriesDurably(const std::string& path);

}  // namespace llmctl
