// How llmctl ends, for scripts; `llmctl --help` lists the same.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "llmctl/v1/jobs.pb.h"

namespace llmctl::client {

enum class ExitCode : int {
  kOk = 0,
  kJobFailed = 1,
  kUsage = 2,  // a bad command line or file
  kNotFound = 3,
  kUnreachable = 4,
  kJobCancelled = 5,
  kConflict = 6,  // not now: the state of the job or cluster forbids it
  kOther = 7,
};

ExitCode ExitCodeOf(const absl::Status& status);

// The exit code that is the job's, once it has ended.
ExitCode ExitCodeOf(const v1::Job& ended);

// The status for a person: its message, and what to do about it where that is known.
std::string Explain(const absl::Status& status);

}  // namespace llmctl::client
