// Between the two cores' vocabularies, as the rpc layers do it between each of them and protobuf.
#pragma once

#include <optional>

#include "coordinator/core/command.h"
#include "coordinator/core/event.h"
#include "coordinator/runtime/rendezvous_store.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"

namespace llmctl::simulator {

// The order for `command.node`, for the commands that go to hosts.
agent::Event ToOrder(const core::ProbeHost& command);
agent::Event ToOrder(const core::RunPreflight& command);
agent::Event ToOrder(const core::StartRanks& command);
agent::Event ToOrder(const core::StopRanks& command);
agent::Event ToOrder(const core::AnswerCheckpoint& command);
// The answer to a rank's request.
agent::Event ToOrder(const GenerationId& generation, int64_t request, const runtime::StoreAnswer& answer);

runtime::StoreOperation ToOperation(const contract::StoreRequest& request);

core::WorkerConnected ToConnected(const Node& node, int64_t link, const agent::Hello& hello);
// Nothing for what never reaches the core (heartbeats, progress, rendezvous keys).
std::optional<core::Event> ToEvent(const NodeId& node, const agent::AgentMessage& message);

}  // namespace llmctl::simulator
