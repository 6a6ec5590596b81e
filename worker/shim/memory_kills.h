// Has the kernel killed a trainer because memory ran out?
//
// A SIGKILL says nothing of who sent it, and what is right to do next depends on that: a job that does not fit will not
// fit the next time either. The kernel counts the processes of a cgroup that it killed for memory, whether the cgroup
// or the whole host had none left (MemoryKills). But it does not say which, and the cgroup may be that of all jobs of
// the host: only kills since the trainer was last known to live can be its own (MemoryKillWatch).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

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

class MemoryKillWatch {
 public:
  explicit MemoryKillWatch(MemoryKills kills) : kills_(std::move(kills)) { Begin(); }

  // The trainer lives now, and what was before is no matter of it.
  void Begin() { older_ = newer_ = kills_.Count(); }
  // It has said something, some time before `now_ms` (monotonic).
  void Heard(int64_t now_ms);
  // Since it was last heard.
  bool HasSeenKill() const { return kills_.Count() > older_; }

 private:
  MemoryKills kills_;
  // Counts at two moments. What it said before it was killed may be read after: then the newer has its own kill in it.
  int64_t older_ = 0;
  int64_t newer_ = 0;
  int64_t newer_at_ms_ = 0;
};

}  // namespace llmctl::shim
