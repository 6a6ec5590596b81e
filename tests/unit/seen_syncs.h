// What a test has asked the disk to keep: fsync is ours here, notes the path and does as it is told. Included by one
// file of a test program.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace llmctl {

inline std::set<std::string>& SeenSyncs() {
  static std::set<std::string> paths;
  return paths;
}

}  // namespace llmctl

extern "C" int fsync(int fd) {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  if (!error) llmctl::SeenSyncs().insert(path.string());
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
