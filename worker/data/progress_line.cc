#include "worker/data/progress_line.h"

#include <cstdio>

#include "absl/strings/str_format.h"

#include "common/base/instant.h"

namespace llmctl::data {
namespace {

constexpr absl::Duration kTerminalPeriod = absl::Milliseconds(250);
constexpr absl::Duration kLogPeriod = absl::Seconds(10);

}  // namespace

std::string ProgressText(const PrepareProgress& progress, absl::Duration elapsed) {
  double seconds = absl::ToDoubleSeconds(elapsed);
  double rate = seconds > 0 ? progress.bytes_read / seconds : 0;
  std::string text = absl::StrFormat("%.1f of %.1f MB  %.1f MB/s  %d documents", progress.bytes_read / 1e6,
                                     progress.bytes_total / 1e6, rate / 1e6, progress.documents);
  if (rate > 0 && progress.bytes_read < progress.bytes_total) {
    absl::Duration left = absl::Seconds((progress.bytes_total - progress.bytes_read) / rate);
    absl::StrAppendFormat(&text, "  about %s left", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))));
  }
  return text;
}

ProgressLine::ProgressLine(bool terminal) : terminal_(terminal), started_(Now().monotonic), shown_(started_) {}

absl::Duration ProgressLine::Elapsed() const { return Now().monotonic - started_; }

void ProgressLine::Show(const PrepareProgress& progress) {
  absl::Duration now = Now().monotonic;
  if (now - shown_ < (terminal_ ? kTerminalPeriod : kLogPeriod)) return;
  shown_ = now;
  std::string text = ProgressText(progress, now - started_);
  // On a terminal: back to the start, the text, and clear the rest of the line.
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  line_open_ = terminal_;
}

void ProgressLine::Finish() {
  if (line_open_) std::fputc('\n', stderr);
  line_open_ = false;
}

}  // namespace llmctl::data
