// The supervisor's words (worker/agent/core) to the wire's (worker_link.proto) and back. Pure; decides nothing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "common/base/ids.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"
#include "worker/agent/devices/devices.h"

namespace llmctl::v1 {
class AgentMessage;
class CoordinatorMessage;
class Generation;
class Welcome;
}  // namespace llmctl::v1

namespace llmctl::agent {


// What a Hello says about this host beside its shims.
struct HostIdentity {
  std::string node;
  std::string boot_id;
  int64_t incarnation = 0;
  std::string build_id;
  std::string trainer_digest;
  std::set<std::string> capabilities;
  std::vector<Device> devices;
  std::string fabric_address;
};

// Names of what this agent can do beyond the version of the link's protocol (docs/compatibility.md).
std::set<std::string> AgentCapabilities();

// OK if this build speaks what the coordinator has settled for.
absl::Status CheckProtocol(const v1::Welcome& welcome);

GenerationId ToId(const v1::Generation& generation);

v1::AgentMessage ToProto(const AgentMessage& message, const HostIdentity& identity);

// What the supervisor has to hear of it; nothing for messages that are the shell's (refused, read_log, inspect) or of a
// newer version.
std::optional<Event> ToEvent(const v1::CoordinatorMessage& message);

}  // namespace llmctl::agent
