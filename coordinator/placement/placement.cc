#include "coordinator/placement/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "coordinator/placement/explain.h"
#include "coordinator/placement/fit.h"

namespace llmctl::placement {
namespace {

std::vector<const Candidate*> InOrder(const Snapshot& snapshot) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : snapshot.candidates) order.push_back(&candidate);
  std::sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
    if (a->requirements.priority != b->requirements.priority) {
      return a->requirements.priority > b->requirements.priority;
    }
    return a->order < b->order;
  });
  return order;
}

std::map<std::string, FreeDevices> FreeByFlavor(const Snapshot& snapshot, const std::set<NodeId>& avoided) {
  std::map<std::string, FreeDevices> free;
  for (const Host& host : snapshot.hosts) {
    if (avoided.contains(host.node)) continue;
    free[host.flavor][host.node].insert(host.free_devices.begin(), host.free_devices.end());
  }
  return free;
}

// Empty when the job does not fit.
std::vector<Slot> FitWithout(const std::set<NodeId>& avoided, const Candidate& candidate, const Snapshot& snapshot) {
  std::map<std::string, FreeDevices> flavors = FreeByFlavor(snapshot, avoided);
  for (int workers : WorkerCounts(candidate.requirements)) {
    for (auto& [flavor, free] : flavors) {
      if (WorkerCapacity(free, candidate.requirements.devices_per_worker) < workers) continue;
      return TakeSlots(candidate, workers, free);
    }
  }
  return {};
}

std::vector<Slot> Fit(const Candidate& candidate, const Snapshot& snapshot) {
  std::vector<Slot> slots = FitWithout(candidate.avoided, candidate, snapshot);
  if (slots.empty() && !candidate.avoided.empty()) slots = FitWithout({}, candidate, snapshot);
  return slots;
}

void MarkTaken(Snapshot& snapshot, const Candidate& candidate, const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    auto host = std::find_if(snapshot.hosts.begin(), snapshot.hosts.end(),
                             [&](const Host& h) { return h.node == slot.node; });
    std::erase(host->free_devices, slot.device);
    host->taken.emplace(slot.device, candidate.job);
  }
}

}  // namespace

Plan MakePlan(const Snapshot& snapshot) {
  Plan plan;
  plan.revision = snapshot.revision;
  Snapshot left = snapshot;
  for (const Candidate* candidate : InOrder(snapshot)) {
    std::vector<Slot> slots = Fit(*candidate, left);
    if (slots.empty()) {
      plan.unplaced.push_back({candidate->job, ExplainUnplaced(left, *candidate)});
      continue;
    }
    MarkTaken(left, *candidate, slots);
    plan.gangs.push_back({candidate->job, std::move(slots)});
  }
  return plan;
}

}  // namespace llmctl::placement
