// Structured logging to stderr: one line per event, key=value, so that both a person and a log shipper read it.
//
//   2026-03-01T12:00:00.123Z INFO store-opened path=/var/lib/llmctl/coordinator.db schema=1
//
// The event is a fixed word; what varies goes into fields. A line is written with one write(2), so lines of
// several threads do not mix. No global state: nothing to set up.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl {

enum class LogLevel { kInfo, kWarning, kError };

// A field's value as text: numbers, strings, ids and whatever absl::StrCat takes.
struct LogField {
  LogField(absl::string_view name_in, const absl::AlphaNum& value_in) : name(name_in), value(value_in.Piece()) {}

  std::string name;
  std::string value;
};

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields = {});

// The line that Log() writes, with its newline. Values with spaces, quotes or control characters are quoted.
std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace llmctl
