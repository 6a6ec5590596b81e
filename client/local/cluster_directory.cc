#include "client/local/cluster_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::client {

ClusterDirectory::ClusterDirectory(const std::string& path)
    : path_(std::filesystem::absolute(path).lexically_normal().string()) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int error = errno;
    ::close(fd);
    if (error != EWOULDBLOCK) return ErrnoStatus(error, absl::StrCat("lock ", path));
    return absl::FailedPreconditionError(absl::StrCat(path, " is held by another process"));
  }
  return FileLock(fd);
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

bool IsLocked(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

std::string LogTail(const std::string& path, int lines) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  size_t at = text->size();
  for (int i = 0; i <= lines && at != std::string::npos && at > 0; ++i) at = text->rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? *text : text->substr(at + 1);
}

}  // namespace llmctl::client
