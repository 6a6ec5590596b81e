#include "coordinator/rpc/link_outlet.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "coordinator/rpc/link_mapping.h"

namespace llmctl::rpc {
namespace {

// A gang's rank table and rendezvous answers fit many times.
constexpr size_t kQueuedBytesMax = size_t{64} << 20;

}  // namespace

void LinkOutlet::Send(v1::CoordinatorMessage message) {
  MutexLock lock(mutex_);
  if (!reactor_ || finishing_) return;
  queued_bytes_ += message.ByteSizeLong();
  if (queued_bytes_ > kQueuedBytesMax) {
    finishing_ = true;
    final_status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 absl::StrCat("the agent left ", queued_bytes_, " bytes unread: connect again"));
    // What was not read will not be: only the message being written has to stay.
    queue_.resize(writing_ ? 1 : 0);
  } else {
    queue_.push_back(std::move(message));
  }
  Advance();
}

void LinkOutlet::Finish(grpc::Status status) {
  MutexLock lock(mutex_);
  if (!reactor_ || finishing_) return;
  finishing_ = true;
  final_status_ = std::move(status);
  Advance();
}

void LinkOutlet::Advance() {
  if (!reactor_ || writing_ || finished_) return;
  if (!queue_.empty()) {
    writing_ = true;
    reactor_->StartWrite(&queue_.front());
  } else if (finishing_) {
    finished_ = true;
    reactor_->Finish(final_status_);
  }
}

void LinkOutlet::WriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  queued_bytes_ -= std::min(queued_bytes_, queue_.front().ByteSizeLong());
  queue_.pop_front();
  if (!ok) {
    // The connection is broken: the rest cannot leave.
    queue_.clear();
    finishing_ = true;
  }
  Advance();
}

void LinkOutlet::Detach() {
  MutexLock lock(mutex_);
  reactor_ = nullptr;
  queue_.clear();
}

void LinkOutlet::set_protocol_version(int version) {
  MutexLock lock(mutex_);
  welcome_.set_protocol_version(version);
}

void LinkOutlet::Welcome() {
  v1::CoordinatorMessage message;
  {
    MutexLock lock(mutex_);
    *message.mutable_welcome() = welcome_;
  }
  Send(std::move(message));
}

void LinkOutlet::Probe(const core::ProbeHost& command) {
  v1::CoordinatorMessage message;
  *message.mutable_probe() = ToProto(command);
  Send(std::move(message));
}

void LinkOutlet::Preflight(const core::RunPreflight& command) {
  v1::CoordinatorMessage message;
  message.mutable_run_preflight()->set_number(command.number);
  Send(std::move(message));
}

void LinkOutlet::Start(const core::StartRanks& command, const std::vector<std::string>& fabric_addresses) {
  v1::CoordinatorMessage message;
  *message.mutable_start() = ToProto(command, fabric_addresses);
  Send(std::move(message));
}

void LinkOutlet::Stop(const core::StopRanks& command) {
  v1::CoordinatorMessage message;
  *message.mutable_stop() = ToProto(command);
  Send(std::move(message));
}

void LinkOutlet::Answer(const core::AnswerCheckpoint& command) {
  v1::CoordinatorMessage message;
  *message.mutable_checkpoint_commit() = ToProto(command);
  Send(std::move(message));
}

void LinkOutlet::ReadLog(const runtime::LogQuery& query) {
  v1::CoordinatorMessage message;
  *message.mutable_read_log() = ToProto(query);
  Send(std::move(message));
}

void LinkOutlet::Inspect(const runtime::InspectionQuery& query) {
  v1::CoordinatorMessage message;
  *message.mutable_inspect() = ToProto(query);
  Send(std::move(message));
}

void LinkOutlet::Refuse(const std::string& reason) {
  v1::CoordinatorMessage message;
  message.mutable_refused()->set_reason(reason);
  Send(std::move(message));
  Finish(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, reason));
}

void LinkOutlet::Close(const std::string& reason) {
  Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, reason));
}

}  // namespace llmctl::rpc
