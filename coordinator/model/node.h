// Node: a host with an agent, as the coordinator knows it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"

namespace llmctl {

struct DeviceInfo {
  int index = 0;
  std::string kind;  // "cpu", "cuda"
  std::string model;
  std::string uuid;
  int64_t memory_bytes = 0;
  bool operator==(const DeviceInfo&) const = default;
};

enum class NodeState {
  kReady,
  // No lease. Its devices stay unplaceable until its next Hello says which shims it still has.
  kLost,
};

// What operators let a node do. Draining ends in Drained when nothing runs there; only an uncordon opens it again.
enum class NodeService {
  kOpen,
  kCordoned,  // no new ranks; what runs goes on
  kDraining,  // no new ranks; what runs is asked to save a checkpoint and go on elsewhere
  kDrained,
};
const char* NodeServiceName(NodeService service);

// What is kept of a node whatever agent, boot or machine comes under its name.
struct NodeStanding {
  NodeService service = NodeService::kOpen;
  std::string service_reason;  // the operator's
  // How long jobs may take to leave a node that is drained; what is left then is stopped.
  absl::Duration drain_deadline = absl::ZeroDuration();
  bool drain_overdue = false;  // the deadline has passed
  bool operator==(const NodeStanding&) const = default;
};

// A capability: the agent lets trainers look for checkpoints that the coordinator does not know of.
inline constexpr char kSearchesCheckpoints[] = "search-checkpoints";

struct Node {
  NodeId id;
  std::string boot_id;
  int64_t incarnation = 0;
  std::string build_id;
  std::string trainer_digest;
  std::set<std::string> capabilities;  // names; those that this coordinator does not know mean nothing to it
  std::string fabric_address;
  std::vector<DeviceInfo> devices;
  NodeState state = NodeState::kReady;
  NodeStanding standing;
  bool operator==(const Node&) const = default;
};

// Whether new ranks may be placed there, as far as operators are concerned.
bool TakesRanks(const Node& node);
// Why not, for a person; empty if it does.
std::string WhyNoRanks(const Node& node);

// What the hosts of one gang must agree in: trainer build and kind of device.
inline std::string Flavor(const Node& node) {
  return node.trainer_digest + "/" + (node.devices.empty() ? "none" : node.devices.front().kind);
}

}  // namespace llmctl
