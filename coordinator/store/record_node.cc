#include "coordinator/store/record_node.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "coordinator/store/record_fields.h"

namespace llmctl::store {
namespace {

constexpr int kVersion = 1;

const char* NodeStateName(NodeState state) {
  switch (state) {
    case NodeState::kReady: return "ready";
    case NodeState::kLost: return "lost";
  }
  return "?";
}

nlohmann::json EncodeStanding(const NodeStanding& standing) {
  return {{"service", NodeServiceName(standing.service)},
          {"service_reason", standing.service_reason},
          {"drain_deadline", EncodeDuration(standing.drain_deadline)},
          {"drain_overdue", standing.drain_overdue}};
}

absl::Status DecodeStanding(const nlohmann::json& object, const std::string& what, NodeStanding& standing) {
  FieldReader fields(object, what);
  fields.ReadEnum("service", NodeService::kDrained, NodeServiceName, standing.service);
  fields.Read("service_reason", standing.service_reason);
  fields.ReadDuration("drain_deadline", standing.drain_deadline);
  fields.Read("drain_overdue", standing.drain_overdue);
  return fields.status();
}

}  // namespace

std::string EncodeNode(const Node& node) {
  nlohmann::json devices = nlohmann::json::array();
  for (const DeviceInfo& device : node.devices) {
    devices.push_back({{"index", device.index},
                       {"kind", device.kind},
                       {"model", device.model},
                       {"uuid", device.uuid},
                       {"memory_bytes", device.memory_bytes}});
  }
  return DumpJson({{"version", kVersion},
                   {"boot_id", node.boot_id},
                   {"incarnation", node.incarnation},
                   {"build_id", node.build_id},
                   {"trainer_digest", node.trainer_digest},
                   {"capabilities", node.capabilities},
                   {"fabric_address", node.fabric_address},
                   {"devices", std::move(devices)},
                   {"state", NodeStateName(node.state)},
                   {"standing", EncodeStanding(node.standing)}});
}

absl::StatusOr<Node> DecodeNode(const NodeId& id, absl::string_view blob) {
  nlohmann::json json = nlohmann::json::parse(blob.begin(), blob.end(), nullptr, /*allow_exceptions=*/false);
  std::string what = absl::StrCat("node ", id.value());
  FieldReader reader(json, what);
  Node node;
  node.id = id;
  reader.CheckVersion(kVersion);
  reader.Read("boot_id", node.boot_id);
  reader.Read("incarnation", node.incarnation);
  reader.Read("build_id", node.build_id);
  reader.Read("trainer_digest", node.trainer_digest);
  reader.Read("fabric_address", node.fabric_address);
  reader.ReadEnum("state", NodeState::kLost, NodeStateName, node.state);
  reader.ForEach("capabilities", [&](const nlohmann::json& item) {
    if (!item.is_string()) {
      return absl::DataLossError(absl::StrCat("stored record of ", what, ": a capability is no text"));
    }
    node.capabilities.insert(item.get<std::string>());
    return absl::OkStatus();
  });
  reader.ForEach("devices", [&](const nlohmann::json& item) {
    FieldReader fields(item, what);
    DeviceInfo device;
    fields.Read("index", device.index);
    fields.Read("kind", device.kind);
    fields.Read("model", device.model);
    fields.Read("uuid", device.uuid);
    fields.Read("memory_bytes", device.memory_bytes);
    node.devices.push_back(std::move(device));
    return fields.status();
  });
  if (const nlohmann::json* standing = reader.Find("standing")) {
    reader.Merge(DecodeStanding(*standing, what, node.standing));
  }
  if (!reader.status().ok()) return reader.status();
  return node;
}

}  // namespace llmctl::store
