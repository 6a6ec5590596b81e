// Clients that submit jobs as fast as they are answered.
//
// Each has a connection of its own, as users on their machines have, and one submission under way: the next goes out
// when the last is acknowledged. All of them are driven by gRPC's callbacks: a thread each would measure the
// scheduler of a small machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "llmctl/v1/job.pb.h"

namespace llmctl::bench {

struct LoadOptions {
  std::string coordinator;
  v1::JobSpec spec;
  int clients = 1;
  // Not counted: connections are made and both sides warm up.
  absl::Duration warmup = absl::Milliseconds(300);
  absl::Duration time = absl::Seconds(2);
};

struct LoadResult {
  double per_second = 0;
  std::vector<absl::Duration> latencies;  // of the submissions that count
};

// The first refusal ends it: a coordinator that refuses is not the subject.
absl::StatusOr<LoadResult> SubmitFor(const LoadOptions& options);

}  // namespace llmctl::bench
