// How long from a submission to its trainer's execve and to the trainer's first line, beside the time in which the
// same program starts with nothing around it.
//
// The kernel tells (inotify): execve opens the program, and the first line changes the log. So nothing in the chain
// has to be changed or trusted for it. Single host, one rank; each job is cancelled when its first line is there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "llmctl/v1/job.pb.h"

namespace llmctl::bench {

struct LaunchOptions {
  std::string coordinator;
  v1::JobSpec spec;
  // The program that the agent starts, a file that nothing else opens.
  std::string trainer;
  // The agent's folder with a directory per rank.
  std::string shims;
  // The agent's folder with a directory per warm standby, of which one must be ready. Then one job is launched and only
  // its first line is timed: the execve was before the submission.
  std::string standbys;
  int jobs = 10;
};

struct LaunchTimes {
  std::vector<absl::Duration> execve;
  std::vector<absl::Duration> first_line;
  std::vector<absl::Duration> bare_start;  // execve to first line of `trainer version`
};

absl::StatusOr<LaunchTimes> MeasureLaunches(const LaunchOptions& options);

}  // namespace llmctl::bench
