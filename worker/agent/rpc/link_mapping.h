// The supervisor's words (worker/agent/core) to the wire's (worker_link.proto) and back. Pure; decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"
#include "worker/agent/devices/devices.h"

namespace llmctl::v1 {
class AgentMessage;
class CoordinatorMessage;
class Generation;
}  // namespace llmctl::v1

namespace llmctl::agent {

inline constexpr int kLinkProtocolVersion = 1;

// What a Hello says about this host beside its shims.
struct HostIdentity {
  std::string node;
  std::string boot_id;
  int64_t incarnation = 0;
  std::string build_id;
  std::string trainer_digest;
  std::vector<Device> devices;
  std::string fabric_address;
};

GenerationId ToId(const v1::Generation& generation);

v1::AgentMessage ToProto(const AgentMessage& message, const HostIdentity& identity);

// What the supervisor has to hear of it; nothing for messages that are the shell's (refused, read_log, inspect) or of a
// newer version.
std::optional<Event> ToEvent(const v1::CoordinatorMessage& message);

}  // namespace llmctl::agent
