// Placement: who runs where? A pure function from a snapshot to a Plan.
//
// Runs off the core's thread on a copy; the core validates the result gang by gang against its present state
// and applies or drops each, so a plan may be stale but never wrong.
#pragma once

#include <cstdint>
#include <map>
#include <set>
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
  // Hosts on which it would fail again: taken only if it fits nowhere else.
  std::set<NodeId> avoided;
};

// A connected host.
struct Host {
  NodeId node;
  std::vector<int> free_devices;  // that nobody owns, in order
  std::map<int, JobId> taken;     // the others, by whom
  // The hosts of one gang agree in this: trainer build and kind of device.
  std::string flavor;
};

// A host that takes no ranks, and why.
struct ClosedHost {
  NodeId node;
  std::string why;
};

struct Snapshot {
  int64_t revision = 0;
  // Repeated in the plan.
  bool whole_queue = true;
  int64_t room = 0;
  std::vector<Candidate> candidates;
  std::vector<Host> hosts;
  std::vector<NodeId> unreachable;  // known hosts without a lease, for the reasons
  std::vector<ClosedHost> closed;   // the same, of hosts that operators keep free
};

// Gangs whole or not at all, in order of priority, then submission; a job that does not fit does not keep
// later ones from being placed. A gang has as many workers as fit between its bounds, where possible a number
// that divides the batch; a worker's devices are on one host, and workers share hosts so that few are used.
// Unplaced jobs get a reason that a person can act on.
Plan MakePlan(Snapshot snapshot);

}  // namespace llmctl::placement
