// The worker link between its wire format and the coordinator's model. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/diagnosis/rank_view.h"
#include "coordinator/core/command.h"
#include "coordinator/core/event.h"
#include "coordinator/runtime/host_links.h"
#include "coordinator/runtime/progress_board.h"
#include "coordinator/runtime/rank_pulse.h"
#include "coordinator/runtime/rendezvous_store.h"
#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/worker_link.pb.h"

namespace llmctl::rpc {

// What agents and this coordinator must agree on; a change that an older side would misread increases it.
inline constexpr int kLinkProtocolVersion = 1;

// InvalidArgument or FailedPrecondition if this host cannot be taken in, with what to do.
absl::StatusOr<core::WorkerConnected> ToModel(const v1::Hello& hello);
GenerationId ToModel(const v1::Generation& generation);
core::ProbeAnswered ToModel(const NodeId& node, const v1::ProbeResult& result);
core::PreflightFinished ToModel(const NodeId& node, const v1::PreflightResult& result);
// InvalidArgument: a phase this program does not know.
absl::StatusOr<core::RankChanged> ToModel(const NodeId& node, const v1::RankUpdate& update);
core::CheckpointOffered ToModel(const NodeId& node, const v1::CheckpointCommitRequest& request);
runtime::Progress ToModel(const v1::ProgressReport& report);
std::vector<runtime::RankPulse> ToModel(const v1::Heartbeat& heartbeat);
std::vector<diagnosis::RankView> ToModel(const v1::Inspection& inspection);
// InvalidArgument: no operation, or one this program does not know.
absl::StatusOr<runtime::StoreOperation> ToModel(const v1::StoreRequest& request);

v1::Generation ToProto(const GenerationId& generation);
v1::Probe ToProto(const core::ProbeHost& command);
v1::StartRanks ToProto(const core::StartRanks& command, const std::vector<std::string>& fabric_addresses);
v1::StopRanks ToProto(const core::StopRanks& command);
v1::CheckpointCommitReply ToProto(const core::AnswerCheckpoint& command);
v1::ReadLog ToProto(const runtime::LogQuery& query);
v1::Inspect ToProto(const runtime::InspectionQuery& query);
v1::StoreReply ToProto(const v1::StoreRequest& request, const runtime::StoreAnswer& answer);

}  // namespace llmctl::rpc
