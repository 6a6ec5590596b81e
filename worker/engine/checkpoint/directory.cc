#include "worker/engine/checkpoint/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/engine/checkpoint/manifest.h"

namespace llmctl::checkpoint {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using OpenDirectory = std::unique_ptr<DIR, CloseDirectory>;

absl::StatusOr<std::vector<std::string>> Names(DIR* directory, const std::string& path) {
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, absl::StrCat("read folder ", path));
    if (entry == nullptr) break;
    absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Files that Save leaves behind, finished or not.
bool IsCheckpointFile(absl::string_view name) {
  return name == kManifestName || absl::StartsWith(name, absl::StrCat(kManifestName, ".tmp.")) ||
         IsTensorFileName(name);
}

bool SameDirectory(const std::string& a, const std::string& b) {
  struct stat first, second;
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

absl::Status RemoveFiles(DIR* folder, const std::string& path) {
  LLM_ASSIGN_OR_RETURN(std::vector<std::string> names, Names(folder, path));
  for (const std::string& name : names) {
    if (IsCheckpointFile(name)) continue;
    return absl::FailedPreconditionError(absl::StrCat("remove checkpoint ", path, ": it holds \"", name,
                                                      "\", which no checkpoint has; move it away or delete it"));
  }
  int fd = ::dirfd(folder);
  if (::unlinkat(fd, kManifestName, 0) == 0) {
    if (::fsync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("fsync folder ", path));
  } else if (errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat("remove ", path, "/", kManifestName));
  }
  for (const std::string& name : names) {
    if (::unlinkat(fd, name.c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat("remove ", path, "/", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatCheckpointName(const CheckpointName& name) {
  return absl::StrFormat("step-%08d-a%d-g%d", name.step, name.attempt, name.generation);
}

absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view text) {
  CheckpointName name;
  std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  bool ok = parts.size() == 4 && parts[0] == "step" && absl::SimpleAtoi(parts[1], &name.step) &&
            absl::ConsumePrefix(&parts[2], "a") && absl::SimpleAtoi(parts[2], &name.attempt) &&
            absl::ConsumePrefix(&parts[3], "g") && absl::SimpleAtoi(parts[3], &name.generation);
  if (ok && FormatCheckpointName(name) == text) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no name of a checkpoint; expected step-<8 digits>-a<attempt>-g<generation>"));
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(const std::string& directory) {
  std::vector<ListedCheckpoint> out;
  OpenDirectory folder(::opendir(directory.c_str()));
  if (!folder && errno == ENOENT) return out;
  if (!folder) return ErrnoStatus(errno, absl::StrCat("open folder ", directory));
  LLM_ASSIGN_OR_RETURN(std::vector<std::string> names, Names(folder.get(), directory));
  for (const std::string& text : names) {
    absl::StatusOr<CheckpointName> name = ParseCheckpointName(text);
    if (!name.ok()) continue;
    std::string path = absl::StrCat(directory, "/", text);
    bool has_manifest = ::access(absl::StrCat(path, "/", kManifestName).c_str(), F_OK) == 0;
    out.push_back({std::move(path), *name, has_manifest});
  }
  std::sort(out.begin(), out.end(), [](const ListedCheckpoint& a, const ListedCheckpoint& b) {
    return std::tie(a.name.step, a.name.generation, a.name.attempt) <
           std::tie(b.name.step, b.name.generation, b.name.attempt);
  });
  return out;
}

absl::Status RemoveCheckpoint(const std::string& directory, const std::string& path) {
  // "dir/step-1/" has an empty file name.
  std::filesystem::path clean(std::string(absl::StripSuffix(path, "/")));
  std::string parent = clean.parent_path().empty() ? "." : clean.parent_path().string();
  std::string name = clean.filename().string();
  absl::Status valid = ParseCheckpointName(name).status();
  if (!valid.ok()) return Annotate(valid, "remove checkpoint ", path);
  if (!SameDirectory(parent, directory)) {
    return absl::InvalidArgumentError(
        absl::StrCat("remove checkpoint ", path, ": it is not directly in the checkpoint directory ", directory));
  }
  int fd = ::open(clean.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return absl::OkStatus();
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("remove checkpoint ", path, ": open folder"));
  OpenDirectory folder(::fdopendir(fd));
  LLM_RETURN_IF_ERROR(RemoveFiles(folder.get(), path));
  if (::rmdir(clean.c_str()) != 0) return ErrnoStatus(errno, absl::StrCat("remove folder ", path));
  return SyncDirectory(parent);
}

}  // namespace llmctl::checkpoint
