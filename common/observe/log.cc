#include "common/observe/log.h"

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"

namespace llmctl {
namespace {

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "INFO";
    case LogLevel::kWarning: return "WARNING";
    case LogLevel::kError: return "ERROR";
  }
  return "?";
}

bool NeedsQuotes(absl::string_view value) {
  if (value.empty()) return true;
  for (char c : value) {
    if (c == ' ' || c == '"' || c == '=' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()), " ",
                                  LevelName(level), " ", event);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.name, "=");
    if (NeedsQuotes(field.value)) {
      absl::StrAppend(&line, "\"", absl::Utf8SafeCEscape(field.value), "\"");
    } else {
      line += field.value;
    }
  }
  line += '\n';
  return line;
}

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  std::string line = FormatLogLine(absl::Now(), level, event, fields);
  // stderr that is gone or full must not stop the service; there is nobody left to tell.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace llmctl
