#include "worker/agent/evidence/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/base/unique_fd.h"

namespace llmctl::agent {
namespace {

constexpr size_t kLinesMax = 200;

// "6,339,5140900,-;text\n KEY=value" -> "[5.140900] text"
std::string Readable(absl::string_view record) {
  std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(record, absl::MaxSplits(';', 1));
  std::vector<absl::string_view> fields = absl::StrSplit(parts.first, ',');
  int64_t microseconds = 0;
  if (fields.size() < 3 || !absl::SimpleAtoi(fields[2], &microseconds)) return std::string(record);
  absl::string_view text = parts.second.substr(0, parts.second.find('\n'));
  return absl::StrFormat("[%d.%06d] %s", microseconds / 1000000, microseconds % 1000000, text);
}

}  // namespace

std::string KernelLogTail() {
  UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log.valid()) return absl::StrCat("(not readable by this user: /dev/kmsg: ", std::strerror(errno), ")\n");
  std::deque<std::string> lines;
  char record[8192];
  while (true) {
    ssize_t got = ::read(log.get(), record, sizeof record);
    // EPIPE: older messages went while we read; the next read goes on behind them.
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) break;
    lines.push_back(Readable(absl::string_view(record, static_cast<size_t>(got))));
    if (lines.size() > kLinesMax) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace llmctl::agent
