#include "worker/shim/memory_kills.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"

namespace llmctl::shim {
namespace {

// Longer than a message of the trainer waits for the shim to read it, also where memory is short and all is slow.
constexpr int64_t kBetweenCountsMs = 2000;

bool IsReadable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

}  // namespace

MemoryKills::MemoryKills(const std::string& proc, const std::string& cgroups) {
  std::string first, second;
  const std::string own = ReadFile(proc + "/self/cgroup").value_or("");
  for (absl::string_view line : absl::StrSplit(own, '\n')) {
    std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1] == "memory") first = absl::StrCat(cgroups, "/memory", parts[2], "/memory.oom_control");
    if (parts[0] == "0") second = absl::StrCat(cgroups, parts[2], "/memory.events");
  }
  // The whole host's count is in the same form, and serves where the process is in no cgroup of its own.
  for (const std::string& file : {first, second, proc + "/vmstat"}) {
    if (file_.empty() && IsReadable(file)) file_ = file;
  }
}

int64_t MemoryKills::Count() const {
  std::string text = ReadFile(file_).value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t count = 0;
    if (words.size() == 2 && words[0] == "oom_kill" && absl::SimpleAtoi(words[1], &count)) return count;
  }
  return -1;
}

void MemoryKillWatch::Heard(int64_t now_ms) {
  if (now_ms - newer_at_ms_ < kBetweenCountsMs) return;
  older_ = newer_;
  newer_ = kills_.Count();
  newer_at_ms_ = now_ms;
}

}  // namespace llmctl::shim
