#include "coordinator/placement/placement.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "coordinator/placement/explain.h"
#include "coordinator/placement/fit.h"

namespace llmctl::placement {
namespace {

// What decides whether a job fits, and why not. In a long queue there are many jobs and few shapes.
using Shape = std::tuple<int, int, int, int, int>;

Shape ShapeOf(const JobRequirements& r) {
  return {r.workers_min, r.workers_max, r.devices_per_worker, r.data_parallel, r.global_batch_size};
}

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

using FreeByFlavor = std::map<std::string, FreeDevices>;

// Empty when the job does not fit; else taken out of `free`.
std::vector<Slot> Fit(const Candidate& candidate, FreeByFlavor& free) {
  for (int workers : WorkerCounts(candidate.requirements)) {
    for (auto& [flavor, devices] : free) {
      if (WorkerCapacity(devices, candidate.requirements.devices_per_worker) < workers) continue;
      return TakeSlots(candidate, workers, devices);
    }
  }
  return {};
}

// The devices that are left while gangs are placed one after another.
class Room {
 public:
  explicit Room(std::vector<Host> hosts) : hosts_(std::move(hosts)) {
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const Host& host = hosts_[i];
      index_[host.node] = i;
      free_[host.flavor][host.node].insert(host.free_devices.begin(), host.free_devices.end());
    }
  }

  // Empty when the job does not fit. Hosts that it avoids are taken only where it fits in no other way.
  std::vector<Slot> Take(const Candidate& candidate) {
    std::vector<Slot> slots;
    if (!candidate.avoided.empty()) {
      FreeByFlavor others = free_;
      for (auto& [flavor, devices] : others) {
        for (const NodeId& node : candidate.avoided) devices.erase(node);
      }
      slots = Fit(candidate, others);
    }
    if (slots.empty()) slots = Fit(candidate, free_);
    for (const Slot& slot : slots) {
      Host& host = hosts_[index_.at(slot.node)];
      free_.at(host.flavor).at(slot.node).erase(slot.device);
      std::erase(host.free_devices, slot.device);
      host.taken.emplace(slot.device, candidate.job);
    }
    return slots;
  }

  const std::vector<Host>& hosts() const { return hosts_; }

 private:
  std::vector<Host> hosts_;
  std::map<NodeId, size_t> index_;
  FreeByFlavor free_;
};

}  // namespace

Plan MakePlan(Snapshot snapshot) {
  Plan plan{.revision = snapshot.revision, .whole_queue = snapshot.whole_queue, .room = snapshot.room};
  Room room(std::move(snapshot.hosts));
  std::vector<const Candidate*> left_out;
  // Room only shrinks here: what has not fitted once fits no more.
  std::map<Shape, std::string> misfits;
  for (const Candidate* candidate : InOrder(snapshot)) {
    Shape shape = ShapeOf(candidate->requirements);
    std::vector<Slot> slots;
    if (!misfits.contains(shape)) slots = room.Take(*candidate);
    if (slots.empty()) {
      misfits.try_emplace(shape);
      left_out.push_back(candidate);
    } else {
      plan.gangs.push_back({candidate->job, std::move(slots)});
    }
  }
  Situation end{room.hosts(), snapshot.unreachable, snapshot.closed};
  for (const Candidate* candidate : left_out) {
    std::string& reason = misfits.at(ShapeOf(candidate->requirements));
    if (reason.empty()) reason = ExplainUnplaced(end, candidate->requirements);
    plan.unplaced.push_back({candidate->job, reason});
  }
  return plan;
}

}  // namespace llmctl::placement
