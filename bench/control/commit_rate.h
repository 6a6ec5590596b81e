// What the disk allows: commits of one job record a second, one after another.
//
// The yardstick for submissions, since a submission is acknowledged only after its commit: the same library and the
// same durability as the coordinator's store (SQLite, WAL, synchronous=FULL, exclusive), and nothing else around it.
// Taken when the log has its full length: while a file grows, each commit also pays for its new size, on some disks
// tenfold.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl::bench {

// In a new file in `directory`, removed afterwards.
absl::StatusOr<double> MeasureCommitsPerSecond(const std::string& directory, absl::string_view record,
                                               absl::Duration time);

}  // namespace llmctl::bench
