// Node: a host with an agent, as the coordinator knows it.
#pragma once

#include <cstdint>
#include <optional>
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
inline constexpr NodeService kNodeServices[] = {NodeService::kOpen, NodeService::kCordoned, NodeService::kDraining,
                                                NodeService::kDrained};

// What the ledger of failures thinks of a node (core/node_ledger.h).
enum class NodeTrust {
  kTrusted,
  kQuarantined,  // no new ranks; its burn-in begins when nothing runs there
  kBurnIn,       // the same, and its pre-flight is being run again and again
  kParole,       // takes ranks; one serious strike puts it back
};
const char* NodeTrustName(NodeTrust trust);
inline constexpr NodeTrust kNodeTrusts[] = {NodeTrust::kTrusted, NodeTrust::kQuarantined, NodeTrust::kBurnIn,
                                            NodeTrust::kParole};

// Something that speaks against a node.
struct Strike {
  absl::Time time = absl::InfinitePast();
  double weight = 0;
  std::string reason;
  JobId job;  // whose failure it was; may be empty
  bool operator==(const Strike&) const = default;
};

// One measurement of a pre-flight.
struct PreflightCheck {
  std::string name;     // "matmul", "memory", "all-reduce", "disk"
  std::string outcome;  // "passed", "failed", "skipped"
  double seconds = 0;
  double value = 0;  // in `unit`; 0 if nothing was measured
  std::string unit;
  std::string detail;
  bool operator==(const PreflightCheck&) const = default;
};
struct PreflightReport {
  absl::Time time = absl::InfinitePast();
  std::string boot_id;  // of the machine that was tested
  bool passed = false;
  std::string failure;  // the first, if it has not passed
  std::vector<PreflightCheck> checks;
  bool operator==(const PreflightReport&) const = default;
};

// What is kept of a node whatever agent, boot or machine comes under its name.
struct NodeStanding {
  NodeService service = NodeService::kOpen;
  std::string service_reason;  // the operator's
  // How long jobs may take to leave a node that is drained; what is left then is stopped.
  absl::Duration drain_deadline = absl::ZeroDuration();
  bool drain_overdue = false;  // the deadline has passed

  NodeTrust trust = NodeTrust::kTrusted;
  absl::Time trust_time = absl::InfinitePast();  // since when it is on parole, or its burn-in has failed
  // How long after that time the burn-in that has failed is tried again.
  absl::Duration burn_in_wait = absl::ZeroDuration();
  std::string quarantine_reason;
  // The sum of all strikes, each halved by every half-life since: as of strike_time.
  double strike_score = 0;
  absl::Time strike_time = absl::InfinitePast();
  std::vector<Strike> strikes;  // the newest, oldest first, bounded
  int quarantines = 0;
  int burn_in_passed = 0;  // rounds of this burn-in
  int burn_in_failed = 0;  // since it was last trusted

  int64_t last_preflight = 0;  // counter: persisted before it is sent
  bool preflight_wanted = false;
  std::optional<PreflightReport> preflight;  // the newest
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

// Whether new ranks may be placed there, as far as operators and the ledger are concerned.
bool TakesRanks(const Node& node);
// Why not, for a person; empty if it does.
std::string WhyNoRanks(const Node& node);

// What the hosts of one gang must agree in: trainer build and kind of device.
inline std::string Flavor(const Node& node) {
  return node.trainer_digest + "/" + (node.devices.empty() ? "none" : node.devices.front().kind);
}

}  // namespace llmctl
