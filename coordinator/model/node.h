// Node: a host with an agent, as the coordinator knows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

struct Node {
  NodeId id;
  std::string boot_id;
  int64_t incarnation = 0;
  std::string build_id;
  std::string trainer_digest;
  std::string fabric_address;
  std::vector<DeviceInfo> devices;
  NodeState state = NodeState::kReady;
  bool operator==(const Node&) const = default;
};

// What the hosts of one gang must agree in: trainer build and kind of device.
inline std::string Flavor(const Node& node) {
  return node.trainer_digest + "/" + (node.devices.empty() ? "none" : node.devices.front().kind);
}

}  // namespace llmctl
