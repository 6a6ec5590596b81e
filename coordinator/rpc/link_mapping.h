// The worker link between its wire format and the coordinator's model. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/base/version_range.h"
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

inline constexpr VersionRange kLinkProtocol{v1::LINK_PROTOCOL_OLDEST, v1::LINK_PROTOCOL_NEWEST};

// The version to speak with the agent. FailedPrecondition, with both sides' versions and which one to upgrade, if
// there is none.
absl::StatusOr<int> AgreeOnProtocol(const v1::Hello& hello, VersionRange ours = kLinkProtocol);

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
