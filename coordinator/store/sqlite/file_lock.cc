#include "coordinator/store/sqlite/file_lock.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"

namespace llmctl::store {

FileLock::~FileLock() {
  // The file stays: removing it would let two processes lock two different files of one name.
  if (fd_ >= 0) ::close(fd_);
}

absl::Status FileLock::Acquire(const std::string& path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("open lock file ", path));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", path));
    char pid[32] = {};
    ssize_t length = ::pread(fd_, pid, sizeof pid - 1, 0);
    absl::string_view owner = length > 0 ? absl::StripSuffix(absl::string_view(pid, length), "\n") : "unknown";
    return absl::FailedPreconditionError(absl::StrCat("another process (pid ", owner, ") holds ", path,
                                                      ": stop it first, or use another --data-dir"));
  }
  std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus(errno, absl::StrCat("write the pid into ", path));
  }
  return absl::OkStatus();
}

}  // namespace llmctl::store
