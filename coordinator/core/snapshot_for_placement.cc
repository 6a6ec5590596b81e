#include "coordinator/core/snapshot_for_placement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include "common/base/check.h"

namespace llmctl::core {
namespace {

// Ids carry the stored counter, and the counter is the order of submission.
int64_t OrderOf(const JobId& id) {
  int64_t order = 0;
  CHECK(absl::SimpleAtoi(absl::StripPrefix(id.value(), "j-"), &order)) << id;
  return order;
}

placement::Candidate MakeCandidate(const Job& job) {
  placement::Candidate candidate;
  candidate.job = job.id;
  candidate.order = OrderOf(job.id);
  candidate.requirements = job.requirements;
  candidate.avoided = {job.avoided_nodes.begin(), job.avoided_nodes.end()};
  if (job.attempt.has_value()) {
    for (const RankState& rank : job.attempt->ranks) candidate.previous.push_back({rank.node, rank.device});
  }
  return candidate;
}

placement::Host MakeHost(const State& state, const Node& node) {
  placement::Host host;
  host.node = node.id;
  host.flavor = Flavor(node);
  for (const DeviceInfo& device : node.devices) {
    auto owner = state.device_owner.find({node.id, device.index});
    if (owner == state.device_owner.end()) {
      host.free_devices.push_back(device.index);
    } else {
      host.taken.emplace(device.index, owner->second.job);
    }
  }
  std::sort(host.free_devices.begin(), host.free_devices.end());
  return host;
}

}  // namespace

placement::Snapshot MakeSnapshot(const State& state) {
  placement::Snapshot snapshot;
  snapshot.revision = state.counters.revision;
  snapshot.room = state.room;
  snapshot.whole_queue = state.room != state.planned_room;
  for (const JobId& id : snapshot.whole_queue ? state.index.queued : state.index.newcomers) {
    snapshot.candidates.push_back(MakeCandidate(state.jobs.at(id)));
  }
  // Hosts are for those who want to be placed.
  if (snapshot.candidates.empty()) return snapshot;
  for (const auto& [id, node] : state.nodes) {
    if (!TakesRanks(node)) {
      snapshot.closed.push_back({id, WhyNoRanks(node)});
    } else if (state.connected.contains(id)) {
      snapshot.hosts.push_back(MakeHost(state, node));
    } else {
      snapshot.unreachable.push_back(id);
    }
  }
  return snapshot;
}

}  // namespace llmctl::core
