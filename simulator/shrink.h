// A failing schedule made small: which intrusions does the violation need?
//
// Intrusions are left out, in halves, then quarters, then one by one, as long as some violation remains. Each try runs
// in a process of its own, so that a failed CHECK of a core counts as a violation like any other.
#pragma once

#include <set>
#include <string>

#include "absl/time/time.h"

#include "simulator/run.h"

namespace llmctl::simulator {

// RunSeed() in a child process. A violation is also that the process was aborted, or ran for longer than `limit`.
struct Verdict {
  std::string violation;
  int intrusions = 0;  // that the schedule had
};
Verdict RunApart(const RunOptions& options, absl::Duration limit);

struct Shrunk {
  RunOptions options;  // with what could be left out
  std::string violation;
  int left = 0;  // intrusions that it needs
  int tries = 0;
};
// `options` fails. Stops after `limit`, with what has been reached by then.
Shrunk Shrink(const RunOptions& options, absl::Duration limit);

// The command that runs this again, and says what happens.
std::string ReplayCommand(const RunOptions& options);
// "1-4,7" and back; false if it is not such a list.
std::string FormatNumbers(const std::set<int>& numbers);
bool ParseNumbers(const std::string& text, std::set<int>* numbers);

}  // namespace llmctl::simulator
