#include "simulator/shrink.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"
#include "common/base/instant.h"
#include "common/base/unique_fd.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kTryLimit = absl::Seconds(20);

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, got);
  return text;
}

// In the child: runs, writes "<intrusions> <violation>" and ends at once, without the parent's exit handlers.
[[noreturn]] void RunAndReport(const RunOptions& options, int fd, absl::Duration limit) {
  ::alarm(static_cast<unsigned>(absl::ToInt64Seconds(limit)));
  std::signal(SIGABRT, SIG_DFL);
  // What a failed CHECK says would be repeated with every try.
  if (!options.print_trace) (void)!std::freopen("/dev/null", "w", stderr);
  Outcome outcome = RunSeed(options);
  std::fflush(stdout);
  std::string line = absl::StrCat(outcome.intrusions, " ", outcome.violation);
  (void)!::write(fd, line.data(), line.size());
  ::_exit(0);
}

}  // namespace

Verdict RunApart(const RunOptions& options, absl::Duration limit) {
  int ends[2];
  CHECK_EQ(::pipe(ends), 0) << "no pipe";
  UniqueFd reader(ends[0]), writer(ends[1]);
  std::fflush(stdout);
  pid_t child = ::fork();
  CHECK_GE(child, 0) << "no process";
  if (child == 0) RunAndReport(options, writer.get(), limit);
  writer.Reset();
  std::string said = ReadAll(reader.get());
  int status = 0;
  ::waitpid(child, &status, 0);
  Verdict verdict;
  std::pair<std::string, std::string> parts = absl::StrSplit(said, absl::MaxSplits(' ', 1));
  if (WIFSIGNALED(status)) {
    verdict.violation = WTERMSIG(status) == SIGALRM ? "it does not end" : "a CHECK of the program failed";
  } else if (absl::SimpleAtoi(parts.first, &verdict.intrusions)) {
    verdict.violation = parts.second;
  } else {
    verdict.violation = "it ended without a word";
  }
  return verdict;
}

Shrunk Shrink(const RunOptions& options, absl::Duration limit) {
  Instant deadline = Now() + limit;
  Shrunk best{.options = options};
  Verdict verdict = RunApart(options, kTryLimit);
  best.violation = verdict.violation;
  // An aborted run cannot say how many it had: the sequence is cut where it surely is over.
  constexpr int kSurelyOver = 400;
  if (best.options.intrusions == 0) best.options.intrusions = verdict.intrusions > 0 ? verdict.intrusions : kSurelyOver;
  std::vector<int> needed;
  for (int i = 0; i < best.options.intrusions; ++i) {
    if (!options.left_out.contains(i)) needed.push_back(i);
  }
  for (size_t piece = std::max<size_t>(needed.size() / 2, 1);; piece /= 2) {
    for (size_t at = 0; at < needed.size() && Now() < deadline;) {
      RunOptions without = best.options;
      size_t end = std::min(at + piece, needed.size());
      without.left_out.insert(needed.begin() + at, needed.begin() + end);
      ++best.tries;
      verdict = RunApart(without, kTryLimit);
      if (verdict.violation.empty()) {
        at = end;
        continue;
      }
      best.options = std::move(without);
      best.violation = verdict.violation;
      needed.erase(needed.begin() + at, needed.begin() + end);
    }
    if (piece <= 1) break;
  }
  // What comes after the last one needed need not be awaited.
  if (!needed.empty() && needed.back() + 1 < best.options.intrusions) {
    RunOptions shorter = best.options;
    shorter.intrusions = needed.back() + 1;
    std::erase_if(shorter.left_out, [&](int n) { return n >= shorter.intrusions; });
    if (verdict = RunApart(shorter, kTryLimit); !verdict.violation.empty()) {
      best.options = std::move(shorter);
      best.violation = verdict.violation;
    }
  }
  best.left = static_cast<int>(needed.size());
  return best;
}

std::string FormatNumbers(const std::set<int>& numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    int first = *it, last = *it;
    while (++it != numbers.end() && *it == last + 1) last = *it;
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (last > first) absl::StrAppend(&text, "-", last);
  }
  return text;
}

bool ParseNumbers(const std::string& text, std::set<int>* numbers) {
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2) return false;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) return false;
    for (int n = first; n <= last; ++n) numbers->insert(n);
  }
  return true;
}

std::string ReplayCommand(const RunOptions& options) {
  std::string command = absl::StrCat("llm-simulator --seed=", options.seed, " --trace");
  if (options.intrusions > 0) absl::StrAppend(&command, " --intrusions=", options.intrusions);
  if (!options.left_out.empty()) absl::StrAppend(&command, " --leave-out=", FormatNumbers(options.left_out));
  if (options.mutant != Mutant::kNone) absl::StrAppend(&command, " --mutant=", MutantName(options.mutant));
  return command;
}

}  // namespace llmctl::simulator
