// MemoryKills: has the kernel killed a process here because memory ran out?
//
// A SIGKILL says nothing of who sent it, and what is right to do next depends on that: a job that does not fit will not
// fit the next time either. The kernel counts the processes of a cgroup that it killed for memory, whether the cgroup
// or the whole host had none left.
#pragma once

#include <cstdint>
#include <string>

namespace llmctl::shim {

class MemoryKills {
 public:
  // Of the cgroup of the calling process, which its children share. The folders are those of Linux but in tests.
  explicit MemoryKills(const std::string& proc = "/proc", const std::string& cgroups = "/sys/fs/cgroup");

  // Since the cgroup was made; -1 where the kernel does not say.
  int64_t Count() const;

 private:
  std::string file_;
};

}  // namespace llmctl::shim
