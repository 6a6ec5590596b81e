#include "common/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl {
namespace {

absl::Status WriteAll(int fd, absl::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
    content.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status Replace(const std::string& path, absl::string_view content, bool durably) {
  std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  {
    UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return ErrnoStatus(errno, absl::StrCat("create ", temporary));
    absl::Status written = WriteAll(file.get(), content, temporary);
    bool sync = written.ok() && durably;
    if (sync && ::fsync(file.get()) != 0) written = ErrnoStatus(errno, absl::StrCat("fsync ", temporary));
    if (!written.ok()) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  absl::Status renamed = ErrnoStatus(errno, absl::StrCat("rename ", temporary, " to ", path));
  ::unlink(temporary.c_str());
  return renamed;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  std::string out;
  char buffer[1 << 16];
  while (true) {
    ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (n == 0) return out;
    out.append(buffer, n);
  }
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  LLM_RETURN_IF_ERROR(Replace(path, content, /*durably=*/true));
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

absl::Status ReplaceFile(const std::string& path, absl::string_view content) {
  return Replace(path, content, /*durably=*/false);
}

absl::Status SyncDirectory(const std::string& path) {
  std::string folder = path.empty() ? "." : path;
  UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return ErrnoStatus(errno, absl::StrCat("open folder ", folder));
  if (::fsync(directory.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync folder ", folder));
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("create folder ", path));
  return absl::OkStatus();
}

absl::Status MakeDirectoriesDurably(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // it ended in a slash
  if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  std::filesystem::path parent = folder.parent_path();
  if (parent != folder && !parent.empty()) LLM_RETURN_IF_ERROR(MakeDirectoriesDurably(parent.string()));
  LLM_RETURN_IF_ERROR(MakeDirectories(folder.string()));
  return SyncDirectory(parent.string());
}

}  // namespace llmctl
