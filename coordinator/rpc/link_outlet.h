// LinkOutlet: the sending half of one agent's connection.
//
// gRPC takes one write at a time and aborts on a second, so messages queue here and leave one by one. Shared
// between the connection and whoever sends to it; after the connection is gone, sending does nothing. A host that
// does not read is cut off at a bound of queued bytes, before it costs memory.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/server_callback.h>

#include "common/base/mutex.h"
#include "coordinator/runtime/host_links.h"
#include "llmctl/v1/worker_link.pb.h"

namespace llmctl::rpc {

using LinkReactor = grpc::ServerBidiReactor<v1::AgentMessage, v1::CoordinatorMessage>;

class LinkOutlet final : public runtime::HostLink {
 public:
  LinkOutlet(LinkReactor* reactor, v1::Welcome welcome) : welcome_(std::move(welcome)), reactor_(reactor) {}

  // Before the host is welcomed.
  void set_protocol_version(int version);

  void Send(v1::CoordinatorMessage message);
  // Ends the call with `status` once what is queued has left.
  void Finish(grpc::Status status);
  // From the reactor.
  void WriteDone(bool ok);
  void Detach();

  void Welcome() override;
  void Probe(const core::ProbeHost& command) override;
  void Preflight(const core::RunPreflight& command) override;
  void Start(const core::StartRanks& command, const std::vector<std::string>& fabric_addresses) override;
  void Stop(const core::StopRanks& command) override;
  void Answer(const core::AnswerCheckpoint& command) override;
  void ReadLog(const runtime::LogQuery& query) override;
  void Inspect(const runtime::InspectionQuery& query) override;
  void Refuse(const std::string& reason) override;
  void Close(const std::string& reason) override;

 private:
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  v1::Welcome welcome_ ABSL_GUARDED_BY(mutex_);
  LinkReactor* reactor_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written if writing_
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::rpc
