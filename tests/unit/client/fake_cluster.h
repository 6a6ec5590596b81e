// A coordinator made of answers that a test sets: what a verb asked is kept, what it gets is scripted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/cluster/cluster.h"

namespace llmctl::client {

inline v1::Job MakeJob(const std::string& id, v1::JobPhase phase, int64_t step = 0) {
  v1::Job job;
  job.set_id(id);
  job.set_name("quickstart");
  job.set_project("default");
  job.set_phase(phase);
  job.set_attempt(1);
  job.set_generation(1);
  if (step > 0) {
    job.mutable_progress()->set_step(step);
    job.mutable_progress()->set_steps(600);
    job.mutable_progress()->set_loss(2.5);
    job.mutable_progress()->set_tokens_per_second(12345);
  }
  return job;
}

class FakeCluster : public Cluster {
 public:
  // One stream of WatchJob: what it brings, and how it then ends.
  struct Stream {
    std::vector<v1::Job> jobs;
    absl::Status end;
  };

  absl::Status error;  // of every request but WatchJob, unless OK
  v1::Job job;
  v1::ListJobsReply jobs;
  v1::ListNodesReply nodes;
  v1::Node node;
  std::deque<v1::Node> node_later;  // what GetNode answers, one after the other; then the last of them
  std::vector<v1::CordonNodeRequest> cordoned;
  std::vector<v1::DrainNodeRequest> drained;
  v1::VersionReply version;
  v1::ListQuarantineReply quarantine;
  std::vector<std::string> backup_pieces;
  std::vector<std::string> released;
  std::deque<Stream> streams;
  std::deque<std::string> log_pieces;
  // Instead of log_pieces, if set; may change `job`.
  std::function<absl::StatusOr<v1::ReadLogReply>(const v1::ReadLogRequest&)> read_log;
  std::map<std::pair<int64_t, int>, std::string> evidence;  // archives by attempt and rank
  v1::ListEventsReply events;
  std::vector<v1::SubmitRequest> submitted;
  std::vector<v1::ListJobsRequest> listed;
  std::vector<v1::WatchJobRequest> watched;

  absl::StatusOr<v1::SubmitReply> Submit(const v1::SubmitRequest& request) override {
    submitted.push_back(request);
    v1::SubmitReply reply;
    *reply.mutable_job() = job;
    return Reply(reply);
  }
  absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest&) override { return Reply(job); }
  absl::StatusOr<v1::ListJobsReply> ListJobs(const v1::ListJobsRequest& request) override {
    listed.push_back(request);
    return Reply(jobs);
  }
  absl::StatusOr<v1::JobReply> Cancel(const v1::CancelJobRequest&) override { return Changed(); }
  absl::StatusOr<v1::JobReply> Suspend(const v1::SuspendJobRequest&) override { return Changed(); }
  absl::StatusOr<v1::JobReply> Resume(const v1::ResumeJobRequest&) override { return Changed(); }
  absl::StatusOr<v1::DeleteJobReply> Delete(const v1::DeleteJobRequest&) override {
    return Reply(v1::DeleteJobReply());
  }
  absl::StatusOr<v1::ReadLogReply> ReadLogOnce(const v1::ReadLogRequest& request) override { return ReadLog(request); }
  absl::StatusOr<v1::ReadLogReply> ReadLog(const v1::ReadLogRequest& request) override {
    if (read_log) return read_log(request);
    v1::ReadLogReply reply;
    if (request.stream() == "evidence") {
      auto archive = evidence.find({request.attempt(), request.rank()});
      if (archive == evidence.end()) return absl::NotFoundError("no evidence is kept");
      constexpr size_t kPiece = 700;
      reply.set_data(archive->second.substr(static_cast<size_t>(request.offset()), kPiece));
      reply.set_next_offset(request.offset() + static_cast<int64_t>(reply.data().size()));
      reply.set_end(reply.next_offset() == static_cast<int64_t>(archive->second.size()));
      return Reply(reply);
    }
    reply.set_next_offset(request.offset());
    if (!log_pieces.empty()) {
      reply.set_data(log_pieces.front());
      reply.set_next_offset(request.offset() + static_cast<int64_t>(log_pieces.front().size()));
      log_pieces.pop_front();
    }
    reply.set_end(log_pieces.empty());
    return Reply(reply);
  }
  absl::StatusOr<v1::ListCheckpointsReply> ListCheckpoints(const v1::ListCheckpointsRequest&) override {
    return Reply(v1::ListCheckpointsReply());
  }
  absl::StatusOr<v1::ListEventsReply> ListEvents(const v1::ListEventsRequest&) override {
    return Reply(events);
  }
  absl::StatusOr<v1::ListNodesReply> ListNodes(const v1::ListNodesRequest&) override { return Reply(nodes); }
  absl::StatusOr<v1::Node> GetNode(const v1::GetNodeRequest&) override {
    if (node_later.empty()) return Reply(node);
    node = node_later.front();
    node_later.pop_front();
    return Reply(node);
  }
  absl::StatusOr<v1::Node> CordonNode(const v1::CordonNodeRequest& request) override {
    cordoned.push_back(request);
    return Reply(node);
  }
  absl::StatusOr<v1::Node> UncordonNode(const v1::UncordonNodeRequest&) override { return Reply(node); }
  absl::StatusOr<v1::Node> DrainNode(const v1::DrainNodeRequest& request) override {
    drained.push_back(request);
    return Reply(node);
  }

  absl::StatusOr<v1::VersionReply> GetVersion(absl::Duration) override { return Reply(version); }
  absl::Status Backup(const std::function<bool(const std::string&)>& on_piece) override {
    for (const std::string& piece : backup_pieces) {
      if (!on_piece(piece)) return absl::OkStatus();
    }
    return error;
  }
  absl::StatusOr<v1::ListQuarantineReply> ListQuarantine() override { return Reply(quarantine); }
  absl::Status ReleaseQuarantine(const v1::ReleaseQuarantineRequest& request) override {
    released.push_back(request.entity());
    return error;
  }

  absl::Status WatchJob(const v1::WatchJobRequest& request, absl::Duration, const OnJob& on_job) override {
    watched.push_back(request);
    if (streams.empty()) return absl::InternalError("the script has no stream left");
    Stream stream = streams.front();
    streams.pop_front();
    for (const v1::Job& seen : stream.jobs) {
      if (!on_job(seen)) return absl::OkStatus();
    }
    return stream.end;
  }

 private:
  template <typename T>
  absl::StatusOr<T> Reply(const T& reply) const {
    if (!error.ok()) return error;
    return reply;
  }
  absl::StatusOr<v1::JobReply> Changed() const {
    v1::JobReply reply;
    *reply.mutable_job() = job;
    return Reply(reply);
  }
};

}  // namespace llmctl::client
