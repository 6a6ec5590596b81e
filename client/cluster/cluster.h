// The coordinator as the verbs see it: one function per request, no gRPC in sight.
//
// Every request is safe to repeat (submissions carry an idempotency key), so a coordinator that is away for a
// moment is waited for: requests are repeated on UNAVAILABLE until the timeout, to an address looked up anew.
// Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/cluster/address.h"
#include "llmctl/v1/admin.pb.h"
#include "llmctl/v1/jobs.pb.h"
#include "llmctl/v1/nodes.pb.h"

namespace llmctl::client {

class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual absl::StatusOr<v1::SubmitReply> Submit(const v1::SubmitRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListJobsReply> ListJobs(const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::JobReply> Cancel(const v1::CancelJobRequest& request) = 0;
  virtual absl::StatusOr<v1::JobReply> Suspend(const v1::SuspendJobRequest& request) = 0;
  virtual absl::StatusOr<v1::JobReply> Resume(const v1::ResumeJobRequest& request) = 0;
  virtual absl::StatusOr<v1::DeleteJobReply> Delete(const v1::DeleteJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ReadLogReply> ReadLog(const v1::ReadLogRequest& request) = 0;
  // Tried once: a host that is away is not waited for.
  virtual absl::StatusOr<v1::ReadLogReply> ReadLogOnce(const v1::ReadLogRequest& request) = 0;
  virtual absl::StatusOr<v1::ListCheckpointsReply> ListCheckpoints(const v1::ListCheckpointsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEventsReply> ListEvents(const v1::ListEventsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListNodesReply> ListNodes(const v1::ListNodesRequest& request) = 0;
  virtual absl::StatusOr<v1::Node> GetNode(const v1::GetNodeRequest& request) = 0;
  virtual absl::StatusOr<v1::Node> CordonNode(const v1::CordonNodeRequest& request) = 0;
  virtual absl::StatusOr<v1::Node> UncordonNode(const v1::UncordonNodeRequest& request) = 0;
  virtual absl::StatusOr<v1::Node> DrainNode(const v1::DrainNodeRequest& request) = 0;

  // Given up after `patience` where that is less than the timeout.
  virtual absl::StatusOr<v1::VersionReply> GetVersion(absl::Duration patience) = 0;
  // Tried once. Calls `on_piece` with the pieces of the file in order, until it returns false.
  virtual absl::Status Backup(const std::function<bool(const std::string&)>& on_piece) = 0;
  virtual absl::StatusOr<v1::ListQuarantineReply> ListQuarantine() = 0;
  virtual absl::Status ReleaseQuarantine(const v1::ReleaseQuarantineRequest& request) = 0;

  // Calls `on_job` with the job now and at every change, until it returns false (OK), the job has ended (OK),
  // or the stream breaks. Tried once: the caller decides how to go on, from the revision of the job seen last.
  // DeadlineExceeded after `longest` at the latest, so that a peer that vanished silently is noticed.
  using OnJob = std::function<bool(const v1::Job&)>;
  virtual absl::Status WatchJob(const v1::WatchJobRequest& request, absl::Duration longest, const OnJob& on_job) = 0;
};

// Dials at the first request.
std::unique_ptr<Cluster> MakeCluster(CoordinatorAddress address, absl::Duration timeout);

}  // namespace llmctl::client
