// Failpoint: a named place in the code where a test has the process die, stop or print.
//
// Some faults only hurt in one moment: between the fsync of a checkpoint and its commit, inside a collective. A kill
// from outside meets such a moment by luck; a failpoint meets it each time:
//
//   HitFailpoint("checkpoint.before_commit");
//
// Nothing happens in a process that was not armed, and it costs one relaxed load. LLM_FAILPOINTS, which main.cc hands
// on, arms:
//
//   LLM_FAILPOINTS=NAME=ACTION[@HIT][,...]     ACTION: kill (SIGKILL) | stop (SIGSTOP) | print:BYTES_PER_SECOND:SECONDS
//   LLM_FAILPOINT_COUNTS=DIRECTORY             a file per name, which grows by one byte at each hit
//
// The files are the counters. They outlive a killed process, and all processes that were given the directory share
// them: @3 is the third hit of all ranks and attempts together, and comes once. A test asserts the count, since a fault
// that was never injected proves nothing.
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl {
namespace failpoint_internal {

inline std::atomic<bool> armed = false;
void Hit(absl::string_view name);

}  // namespace failpoint_internal

// From any thread. `print` returns at once, and the printing goes on beside.
inline void HitFailpoint(absl::string_view name) {
  if (failpoint_internal::armed.load(std::memory_order_relaxed)) failpoint_internal::Hit(name);
}

// The values of the two variables; nothing is armed if `rules` is empty. Not thread-safe: before the process has
// threads that may hit one. InvalidArgument says what is wrong with the rules.
absl::Status ArmFailpoints(absl::string_view rules, const std::string& counts_directory);

}  // namespace llmctl
