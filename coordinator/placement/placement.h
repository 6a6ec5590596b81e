// Placement: who runs where? A pure function from a snapshot to a Plan.
//
// Runs off the core's thread on a copy; the core validates the result gang by gang against its present state
// and applies or drops each, so a plan may be stale but never wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"
#include "coordinator/model/plan.h"

namespace llmctl::placement {

// A job that wants devices.
struct Candidate {
  JobId job;
  int64_t order = 0;  // of submission
  JobRequirements requirements;
  // Where its ranks were in the last attempt: kept where possible, so that ranks are stable over restarts.
  std::vector<Slot> previous;
};

// A host that can be used, with the devices nobody owns.
struct Host {
  NodeId node;
  std::vector<int> free_devices;
  int devices = 0;
};

struct Snapshot {
  int64_t revision = 0;
  std::vector<Candidate> candidates;
  std::vector<Host> hosts;
};

// Gangs whole or not at all, in order of priority, then submission; a job that does not fit does not keep
// later ones from being placed. Unplaced jobs get a reason.
Plan MakePlan(const Snapshot& snapshot);

}  // namespace llmctl::placement
