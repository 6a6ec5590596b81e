// Why a job is not placed, in words that a person can act on.
#pragma once

#include <string>

#include "coordinator/placement/placement.h"

namespace llmctl::placement {

// `snapshot` is as it was left by the jobs that went before: what they took is in Host::taken.
std::string ExplainUnplaced(const Snapshot& snapshot, const Candidate& candidate);

}  // namespace llmctl::placement
