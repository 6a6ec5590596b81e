// Jobs between the API and the coordinator's model.
//
// Inward, a specification becomes opaque bytes and the few inputs of decisions; outward, a job becomes what its
// user sees. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "coordinator/core/event.h"
#include "coordinator/model/job.h"
#include "coordinator/runtime/progress_board.h"
#include "coordinator/runtime/rank_board.h"
#include "coordinator/runtime/snapshot.h"
#include "llmctl/v1/job.pb.h"
#include "llmctl/v1/jobs.pb.h"

namespace llmctl::rpc {

// A validated specification with defaults applied. Equal specifications give equal bytes.
core::JobSubmitted ToSubmission(const v1::JobSpec& spec, const std::string& idempotency_key);

v1::Job ToProto(const runtime::JobView& view, const std::optional<runtime::Progress>& progress);
// What is seen of the ranks while they run.
void AddLiveRanks(const std::map<int, runtime::LiveRank>& live, v1::Job& job);
v1::CommittedCheckpointView ToProto(const CheckpointRecord& checkpoint);
v1::JobEvent ToProto(const JobEventRecord& event);
v1::JobPhase ToProto(JobPhase phase);

google::protobuf::Timestamp ToTimestamp(absl::Time time);

}  // namespace llmctl::rpc
