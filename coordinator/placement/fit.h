// Where the workers of one gang go: hosts with room, few of them, ranks where they were before.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/placement/placement.h"

namespace llmctl::placement {

// Free devices by host, of one flavor.
using FreeDevices = std::map<NodeId, std::set<int>>;

// How many workers of `devices_per_worker` devices fit.
int WorkerCapacity(const FreeDevices& free, int devices_per_worker);

// Numbers of workers that the job may have, the most wanted first: those whose ranks divide the batch before the
// others, then the larger.
std::vector<int> WorkerCounts(const JobRequirements& requirements);

// Slots of `workers` workers, taken out of `free`. Their capacity must suffice.
std::vector<Slot> TakeSlots(const Candidate& candidate, int workers, FreeDevices& free);

}  // namespace llmctl::placement
