#include "coordinator/placement/fit.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace llmctl::placement {
namespace {

using Worker = std::vector<Slot>;

int RoomOf(const std::set<int>& devices, int per_worker) { return static_cast<int>(devices.size()) / per_worker; }

// Worker `index` of the last attempt, if its devices are free; else empty.
Worker PreviousWorker(const Candidate& candidate, int index, const FreeDevices& free) {
  int per_worker = candidate.requirements.devices_per_worker;
  size_t begin = static_cast<size_t>(index) * per_worker;
  if (begin + per_worker > candidate.previous.size()) return {};
  Worker worker(candidate.previous.begin() + begin, candidate.previous.begin() + begin + per_worker);
  auto host = free.find(worker.front().node);
  if (host == free.end()) return {};
  for (const Slot& slot : worker) {
    if (slot.node != host->first || !host->second.contains(slot.device)) return {};
  }
  return worker;
}

void Take(const Worker& worker, FreeDevices& free) {
  for (const Slot& slot : worker) free.at(slot.node).erase(slot.device);
}

// The host that keeps the gang on the fewest: one it uses already, else the tightest that holds all of `wanted`
// workers, else the roomiest.
NodeId ChooseHost(const FreeDevices& free, const std::set<NodeId>& used, int per_worker, int wanted) {
  const NodeId* best = nullptr;
  auto best_rank = std::pair(0, 0);
  for (const auto& [node, devices] : free) {
    int room = RoomOf(devices, per_worker);
    if (room == 0) continue;
    std::pair<int, int> rank(2, -room);
    if (room >= wanted) rank = {1, room};
    if (used.contains(node)) rank = {0, -room};
    if (best == nullptr || rank < best_rank) {
      best = &node;
      best_rank = rank;
    }
  }
  CHECK(best != nullptr) << "placement counted more room than there is";
  return *best;
}

Worker NewWorker(const NodeId& node, int per_worker, const FreeDevices& free) {
  Worker worker;
  for (int device : free.at(node)) {
    if (static_cast<int>(worker.size()) == per_worker) break;
    worker.push_back({node, device});
  }
  return worker;
}

}  // namespace

int WorkerCapacity(const FreeDevices& free, int devices_per_worker) {
  int capacity = 0;
  for (const auto& [node, devices] : free) capacity += RoomOf(devices, devices_per_worker);
  return capacity;
}

std::vector<int> WorkerCounts(const JobRequirements& requirements) {
  std::vector<int> dividing;
  std::vector<int> others;
  int most = std::max(requirements.workers_min, requirements.workers_max);
  // More ranks than sequences are never allowed, which bounds the loop for absurd maxima.
  most = std::min(most, requirements.global_batch_size / requirements.devices_per_worker);
  for (int workers = most; workers >= requirements.workers_min; --workers) {
    int world = workers * requirements.devices_per_worker;
    if (!WorldSizeAllowed(requirements, world)) continue;
    (requirements.global_batch_size % world == 0 ? dividing : others).push_back(workers);
  }
  dividing.insert(dividing.end(), others.begin(), others.end());
  return dividing;
}

std::vector<Slot> TakeSlots(const Candidate& candidate, int workers, FreeDevices& free) {
  int per_worker = candidate.requirements.devices_per_worker;
  std::vector<Worker> chosen(workers);
  std::set<NodeId> used;
  int missing = workers;
  for (int i = 0; i < workers; ++i) {
    chosen[i] = PreviousWorker(candidate, i, free);
    if (chosen[i].empty()) continue;
    Take(chosen[i], free);
    used.insert(chosen[i].front().node);
    --missing;
  }
  for (Worker& worker : chosen) {
    if (!worker.empty()) continue;
    NodeId host = ChooseHost(free, used, per_worker, missing);
    worker = NewWorker(host, per_worker, free);
    Take(worker, free);
    used.insert(host);
    --missing;
  }
  std::vector<Slot> slots;
  for (const Worker& worker : chosen) slots.insert(slots.end(), worker.begin(), worker.end());
  return slots;
}

}  // namespace llmctl::placement
