#include "common/base/failpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl {
namespace {

enum class Action { kKill, kStop, kPrint };

struct Rule {
  Action action = Action::kKill;
  int64_t hit = 1;
  int64_t bytes_per_second = 0;  // print
  int64_t seconds = 0;           // print
};

// What is done at one name, and how often it was hit.
class Point {
 public:
  // Which hit this is, counted over all processes. The kernel makes an append and the descriptor's new position one.
  int64_t Count() {
    MutexLock lock(mutex_);
    if (::write(counter_.get(), "+", 1) != 1) return 0;
    return ::lseek(counter_.get(), 0, SEEK_CUR);
  }

  absl::Status OpenCounter(const std::string& path) {
    counter_.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    return counter_.valid() ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("open ", path));
  }

  std::vector<Rule> rules;

 private:
  Mutex mutex_;
  UniqueFd counter_;
};

using Points = std::map<std::string, Point, std::less<>>;

// Written before `armed` is, and never freed: any thread may hit one until the very end.
Points* points = nullptr;

absl::Status ParseAction(absl::string_view text, Rule& rule) {
  std::vector<absl::string_view> words = absl::StrSplit(text, ':');
  if (text == "kill") {
    rule.action = Action::kKill;
  } else if (text == "stop") {
    rule.action = Action::kStop;
  } else if (words.size() == 3 && words[0] == "print" && absl::SimpleAtoi(words[1], &rule.bytes_per_second) &&
             absl::SimpleAtoi(words[2], &rule.seconds) && rule.bytes_per_second > 0) {
    rule.action = Action::kPrint;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("expected kill, stop or print:BYTES_PER_SECOND:SECONDS, found \"", text, "\""));
  }
  return absl::OkStatus();
}

absl::Status ParseRules(absl::string_view text, Points& out) {
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    std::pair<absl::string_view, absl::string_view> when = absl::StrSplit(parts.second, absl::MaxSplits('@', 1));
    Rule rule;
    LLM_RETURN_IF_ERROR(Annotate(ParseAction(when.first, rule), "failpoint \"", entry, "\""));
    bool counted = when.second.empty() || (absl::SimpleAtoi(when.second, &rule.hit) && rule.hit > 0);
    if (parts.first.empty() || !counted) {
      return absl::InvalidArgumentError(absl::StrCat("failpoint \"", entry, "\": expected NAME=ACTION[@HIT]"));
    }
    out[std::string(parts.first)].rules.push_back(rule);
  }
  return absl::OkStatus();
}

// Numbered lines of 128 bytes, so that a reader can tell a gap and a repeat.
void Print(const Rule& rule) {
  constexpr int64_t kLineBytes = 128, kLinesPerBlock = 512;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const int64_t lines = rule.bytes_per_second * rule.seconds / kLineBytes;
  for (int64_t line = 0; line < lines;) {
    std::string block;
    for (int64_t i = 0; i < kLinesPerBlock && line < lines; ++i, ++line) {
      absl::StrAppendFormat(&block, "failpoint line %012d ", line);
      block.append(kLineBytes - 1 - block.size() % kLineBytes, '.');
      block += '\n';
    }
    // One call, so that a line of another thread never lands inside one of these.
    std::fwrite(block.data(), 1, block.size(), stdout);
    std::fflush(stdout);
    std::chrono::microseconds due(line * kLineBytes * 1000000 / rule.bytes_per_second);
    std::this_thread::sleep_until(began + due);
  }
}

void Perform(absl::string_view name, int64_t hit, const Rule& rule) {
  constexpr const char* kNames[] = {"kill", "stop", "print"};
  absl::FPrintF(stderr, "failpoint %s, hit %d: %s\n", name, hit, kNames[static_cast<int>(rule.action)]);
  switch (rule.action) {
    case Action::kKill: ::kill(::getpid(), SIGKILL); return;
    case Action::kStop: ::kill(::getpid(), SIGSTOP); return;
    case Action::kPrint: std::thread(Print, rule).detach(); return;
  }
}

}  // namespace

namespace failpoint_internal {

void Hit(absl::string_view name) {
  std::atomic_thread_fence(std::memory_order_acquire);
  auto it = points->find(name);
  if (it == points->end()) return;
  int64_t hit = it->second.Count();
  for (const Rule& rule : it->second.rules) {
    if (rule.hit == hit) Perform(name, hit, rule);
  }
}

}  // namespace failpoint_internal

absl::Status ArmFailpoints(absl::string_view rules, const std::string& counts_directory) {
  if (rules.empty()) return absl::OkStatus();
  if (counts_directory.empty()) {
    return absl::InvalidArgumentError("LLM_FAILPOINTS is set: expected a directory in LLM_FAILPOINT_COUNTS");
  }
  auto parsed = std::make_unique<Points>();
  LLM_RETURN_IF_ERROR(Annotate(ParseRules(rules, *parsed), "LLM_FAILPOINTS"));
  LLM_RETURN_IF_ERROR(MakeDirectories(counts_directory));
  for (auto& [name, point] : *parsed) {
    LLM_RETURN_IF_ERROR(point.OpenCounter(absl::StrCat(counts_directory, "/", name)));
  }
  delete std::exchange(points, parsed.release());
  failpoint_internal::armed.store(true, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace llmctl
