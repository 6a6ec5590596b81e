// Why a job is not placed, in words that a person can act on.
#pragma once

#include <string>
#include <vector>

#include "coordinator/placement/placement.h"

namespace llmctl::placement {

// The cluster when all has been placed that fits: what the plan gives away is in Host::taken.
struct Situation {
  const std::vector<Host>& hosts;
  const std::vector<NodeId>& unreachable;
  const std::vector<ClosedHost>& closed;
};

std::string ExplainUnplaced(const Situation& situation, const JobRequirements& requirements);

}  // namespace llmctl::placement
