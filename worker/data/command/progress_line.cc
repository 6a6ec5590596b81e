#include "worker/data/command/progress_line.h"

#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/instant.h"

namespace llmctl::data {
namespace {

constexpr std::chrono::milliseconds kTerminalPeriod(250);
constexpr std::chrono::seconds kLogPeriod(10);

std::string AmountText(double amount, absl::string_view unit) {
  return unit == "bytes" ? absl::StrFormat("%.1f MB", amount / 1e6) : absl::StrFormat("%.0f %s", amount, unit);
}

}  // namespace

std::string ProgressText(absl::string_view name, absl::string_view unit, int64_t done, int64_t amount,
                         absl::Duration elapsed) {
  std::string text = absl::StrCat(name, "  ");
  if (amount > 0) {
    absl::StrAppendFormat(&text, "%.1f %% of %s", 100.0 * std::min(done, amount) / amount, AmountText(amount, unit));
  } else {
    text += AmountText(done, unit);
  }
  double seconds = absl::ToDoubleSeconds(elapsed);
  double rate = seconds > 0 ? done / seconds : 0;
  if (unit != "tasks") absl::StrAppend(&text, "  ", AmountText(rate, unit), "/s");
  if (rate > 0 && done < amount) {
    absl::Duration left = absl::Seconds((amount - done) / rate);
    absl::StrAppendFormat(&text, "  about %s left", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))));
  }
  return text;
}

ProgressLine::ProgressLine(bool terminal) : terminal_(terminal), started_(Now().monotonic) {}
ProgressLine::~ProgressLine() { Stop(); }

absl::Duration ProgressLine::Elapsed() const { return Now().monotonic - started_; }

void ProgressLine::Begin(int, absl::string_view name, const Stage& made, const StageProgress& progress) {
  name_ = std::string(name);
  unit_ = std::string(made.unit());
  amount_ = made.amount();
  progress_ = &progress;
  stage_started_ = Now().monotonic;
  printed_ = false;
  {
    MutexLock lock(mutex_);
    ended_ = false;
  }
  shower_ = std::thread([this] { ShowUntilEnd(); });
}

absl::Status ProgressLine::End(int, bool) {
  Stop();
  return absl::OkStatus();
}

void ProgressLine::Stop() {
  if (!shower_.joinable()) return;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  shower_.join();
}

void ProgressLine::ShowUntilEnd() {
  while (true) {
    auto next = std::chrono::steady_clock::now() + (terminal_ ? kTerminalPeriod : kLogPeriod);
    {
      MutexLock lock(mutex_);
      while (!ended_ && changed_.WaitUntil(mutex_, next)) {
      }
      if (ended_) break;
    }
    Print(/*last=*/false);
  }
  // A stage that was too short to be shown is not shown.
  if (printed_) Print(/*last=*/true);
}

void ProgressLine::Print(bool last) {
  printed_ = true;
  std::string text = ProgressText(name_, unit_, progress_->done, amount_, Now().monotonic - stage_started_);
  // On a terminal: back to the start, the text, and clear the rest of the line.
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  if (terminal_ && last) std::fputc('\n', stderr);
}

}  // namespace llmctl::data
