#include "worker/agent/host/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/instant.h"
#include "common/base/unique_fd.h"

namespace llmctl::agent {
namespace {

// What killed a process was logged just before; the clocks of kernel log and of processes differ by little.
constexpr absl::Duration kWindow = absl::Minutes(2);
constexpr size_t kBytesMost = 8 << 10;
constexpr size_t kRecordBytesMost = 8 << 10;  // the kernel's own limit
constexpr size_t kLogBytesMost = 16 << 20;

// The number after `key`, or -1.
int64_t NumberAfter(absl::string_view text, absl::string_view key) {
  size_t at = text.find(key);
  if (at == absl::string_view::npos) return -1;
  absl::string_view rest = text.substr(at + key.size());
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
  int64_t number = -1;
  return absl::SimpleAtoi(rest.substr(0, digits), &number) ? number : -1;
}

bool IsAbout(absl::string_view message, int64_t pid) {
  if (int64_t killed = NumberAfter(message, "Killed process "); killed >= 0) return killed == pid;
  if (absl::StartsWith(message, "oom-kill:")) return NumberAfter(message, ",pid=") == pid;
  if (absl::StrContains(message, "NVRM: Xid")) {
    // Those of a whole device name no process.
    int64_t named = NumberAfter(message, "pid=");
    return named < 0 || named == pid;
  }
  for (absl::string_view hardware : {"Hardware Error", "EDAC ", "I/O error, dev", "EXT4-fs error", "XFS ("}) {
    if (absl::StrContains(message, hardware)) return true;
  }
  return false;
}

std::string ReadAllRecords() {
  UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string records;
  if (!log.valid()) return records;
  std::vector<char> buffer(kRecordBytesMost);
  while (records.size() < kLogBytesMost) {
    // Each read gives one record. EPIPE: some were overwritten meanwhile, go on with the next.
    ssize_t n = ::read(log.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    records.append(buffer.data(), static_cast<size_t>(n));
  }
  return records;
}

}  // namespace

std::string SelectKernelLines(absl::string_view records, int64_t pid, absl::Duration now) {
  std::string selected;
  for (absl::string_view line : absl::StrSplit(records, '\n', absl::SkipEmpty())) {
    // "priority,sequence,microseconds,flags;message"; lines of properties follow, each after a space.
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(';', 1));
    std::vector<absl::string_view> prefix = absl::StrSplit(parts.first, ',');
    int64_t microseconds = 0;
    if (line[0] == ' ' || prefix.size() < 3 || !absl::SimpleAtoi(prefix[2], &microseconds)) continue;
    if (absl::Microseconds(microseconds) < now - kWindow || !IsAbout(parts.second, pid)) continue;
    if (selected.size() + parts.second.size() > kBytesMost) break;
    absl::StrAppend(&selected, parts.second, "\n");
  }
  return selected;
}

std::string KernelLinesAbout(int64_t pid) {
  if (pid <= 0) return "";
  return SelectKernelLines(ReadAllRecords(), pid, Now().monotonic);
}

}  // namespace llmctl::agent
