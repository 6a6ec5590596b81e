#include "coordinator/store/sqlite/log_length.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/base/unique_fd.h"

namespace llmctl::store {
namespace {

// A thousand frames of a page and its header, and what the commit that passes the thousandth may add.
constexpr off_t kLogBytes = off_t{4200} * 1024;
constexpr uint64_t kPlenty = uint64_t{256} << 20;

}  // namespace

void LengthenLog(const std::string& path) {
  UniqueFd log(::open((path + "-wal").c_str(), O_WRONLY | O_CLOEXEC));
  struct stat found = {};
  struct statvfs disk = {};
  if (!log.valid() || ::fstat(log.get(), &found) != 0 || ::fstatvfs(log.get(), &disk) != 0) return;
  if (uint64_t{disk.f_bavail} * disk.f_frsize < kPlenty) return;
  // Written, not reserved: a reserved block costs the first write to it as much as a new one.
  const std::string zeros(256 * 1024, '\0');
  for (off_t at = found.st_size; at < kLogBytes;) {
    ssize_t wrote = ::pwrite(log.get(), zeros.data(), std::min<size_t>(zeros.size(), kLogBytes - at), at);
    if (wrote <= 0) return;
    at += wrote;
  }
  ::fsync(log.get());
}

}  // namespace llmctl::store
