// A job, with its live attempt and committed checkpoints, as the versioned JSON blob of its row.
//
// Decode(Encode(job)) == job for every job the core can make. Version 1 is the first; a blob of a newer version
// than this program writes is refused rather than read in part.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/base/ids.h"
#include "coordinator/model/job.h"

namespace llmctl::store {

std::string EncodeJob(const Job& job);
absl::StatusOr<Job> DecodeJob(const JobId& id, absl::string_view blob);

}  // namespace llmctl::store
