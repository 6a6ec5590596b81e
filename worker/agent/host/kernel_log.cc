#include "worker/agent/host/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::agent {
namespace {

// What killed a process was logged just before; the clocks of kernel log and of processes differ by little.
constexpr absl::Duration kWindow = absl::Minutes(2);
constexpr size_t kBytesMost = 8 << 10;
constexpr size_t kRecordBytesMost = 8 << 10;  // the kernel's own limit
constexpr size_t kLogBytesMost = 16 << 20;
constexpr size_t kTailLines = 200;

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

absl::StatusOr<std::string> ReadAllRecords() {
  UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log.valid()) return ErrnoStatus(errno, "/dev/kmsg");
  std::string records;
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

struct Message {
  int64_t microseconds;  // since boot
  absl::string_view text;
};

std::vector<Message> MessagesOf(absl::string_view records) {
  std::vector<Message> messages;
  for (absl::string_view line : absl::StrSplit(records, '\n', absl::SkipEmpty())) {
    // "priority,sequence,microseconds,flags;message"; lines of properties follow, each after a space.
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(';', 1));
    std::vector<absl::string_view> prefix = absl::StrSplit(parts.first, ',');
    int64_t microseconds = 0;
    if (line[0] == ' ' || prefix.size() < 3 || !absl::SimpleAtoi(prefix[2], &microseconds)) continue;
    messages.push_back({microseconds, parts.second});
  }
  return messages;
}

}  // namespace

std::string SelectKernelLines(absl::string_view records, int64_t pid, absl::Duration now) {
  std::string selected;
  for (const Message& message : MessagesOf(records)) {
    if (absl::Microseconds(message.microseconds) < now - kWindow || !IsAbout(message.text, pid)) continue;
    if (selected.size() + message.text.size() > kBytesMost) break;
    absl::StrAppend(&selected, message.text, "\n");
  }
  return selected;
}

std::string KernelLinesAbout(int64_t pid) {
  if (pid <= 0) return "";
  return SelectKernelLines(ReadAllRecords().value_or(""), pid, Now().monotonic);
}

std::string LastKernelLines(absl::string_view records) {
  std::vector<Message> messages = MessagesOf(records);
  std::string lines;
  for (size_t i = messages.size() - std::min(messages.size(), kTailLines); i < messages.size(); ++i) {
    const Message& message = messages[i];
    absl::StrAppendFormat(&lines, "[%d.%06d] %s\n", message.microseconds / 1000000, message.microseconds % 1000000,
                          message.text);
  }
  return lines;
}

std::string KernelLogTail() {
  absl::StatusOr<std::string> records = ReadAllRecords();
  if (!records.ok()) return absl::StrCat("(not readable by this user: ", records.status().message(), ")\n");
  return LastKernelLines(*records);
}

}  // namespace llmctl::agent
