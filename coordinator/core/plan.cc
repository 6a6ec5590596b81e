// A plan was made from a snapshot that may be stale: each gang is checked against the present state and begun or
// dropped. What was dropped is planned again.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"

namespace llmctl::core {
namespace {

bool IsFree(const State& state, const Slot& slot) {
  if (!state.connected.contains(slot.node) || state.device_owner.contains({slot.node, slot.device})) return false;
  const Node& node = state.nodes.at(slot.node);
  if (!TakesRanks(node)) return false;
  const std::vector<DeviceInfo>& devices = node.devices;
  return std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& d) { return d.index == slot.device; });
}

// Each run of devices_per_worker slots is one worker, on one host.
bool ShapeFits(const JobRequirements& requirements, const std::vector<Slot>& slots) {
  int per_worker = requirements.devices_per_worker;
  int world = static_cast<int>(slots.size());
  if (world == 0 || world % per_worker != 0 || !WorldSizeAllowed(requirements, world)) return false;
  int workers = world / per_worker;
  if (workers < requirements.workers_min) return false;
  if (workers > std::max(requirements.workers_min, requirements.workers_max)) return false;
  for (int i = 0; i < world; ++i) {
    if (slots[i].node != slots[i - i % per_worker].node) return false;
  }
  return true;
}

bool CanBegin(const State& state, const GangPlacement& gang) {
  auto found = state.jobs.find(gang.job);
  if (found == state.jobs.end() || found->second.phase != JobPhase::kQueued) return false;
  if (!ShapeFits(found->second.requirements, gang.slots)) return false;
  std::set<std::pair<NodeId, int>> used;
  for (const Slot& slot : gang.slots) {
    if (!IsFree(state, slot) || !used.emplace(slot.node, slot.device).second) return false;
    if (Flavor(state.nodes.at(slot.node)) != Flavor(state.nodes.at(gang.slots.front().node))) return false;
  }
  return true;
}

}  // namespace

void OnPlanReady(Turn& turn, const PlanReady& event) {
  bool stale = event.plan.revision != turn.state.counters.revision;
  bool dropped = false;
  for (const GangPlacement& gang : event.plan.gangs) {
    turn.WorkOn(gang.job);
    if (CanBegin(turn.state, gang)) {
      BeginGang(turn, turn.state.jobs.at(gang.job), gang.slots);
    } else {
      dropped = true;
    }
  }
  turn.WorkOnEvent();
  for (const Unplaced& unplaced : event.plan.unplaced) {
    auto job = turn.state.jobs.find(unplaced.job);
    if (job == turn.state.jobs.end() || job->second.phase != JobPhase::kQueued) continue;
    turn.state.waiting_reason[unplaced.job] = unplaced.reason;
    turn.state.index.newcomers.erase(unplaced.job);
  }
  if (event.plan.whole_queue) turn.state.planned_room = event.plan.room;
  // Planning the same state again would give the same plan.
  if (dropped && stale) turn.RequestPlan();
}

}  // namespace llmctl::core
