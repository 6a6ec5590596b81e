#include "coordinator/rpc/worker_link_service.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/observe/log.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/link_mapping.h"
#include "coordinator/rpc/link_outlet.h"

namespace llmctl::rpc {
namespace {

v1::Welcome MakeWelcome(const runtime::Runtime& runtime) {
  v1::Welcome welcome;
  welcome.set_term(runtime.term());
  welcome.set_heartbeat_interval_ms(absl::ToInt64Milliseconds(runtime.options().heartbeat_interval));
  welcome.set_lease_ms(absl::ToInt64Milliseconds(runtime.options().lease));
  welcome.set_build_id(runtime.options().build_id);
  return welcome;
}

// One agent's connection. Reads are in order and one at a time, so what they touch needs no lock.
class Connection final : public LinkReactor {
 public:
  explicit Connection(runtime::Runtime& runtime)
      : runtime_(runtime),
        link_(runtime.NextLink()),
        outlet_(std::make_shared<LinkOutlet>(this, MakeWelcome(runtime))) {
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      // The agent closed its half, or is gone.
      outlet_->Finish(grpc::Status::OK);
      return;
    }
    absl::Status status = node_.empty() ? HandleHello() : HandleMessage();
    if (!status.ok()) {
      Log(LogLevel::kWarning, "link-refused", {{"node", incoming_.hello().node()}, {"error", status.ToString()}});
      outlet_->Refuse(std::string(status.message()));
      return;
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override { outlet_->WriteDone(ok); }

  void OnCancel() override { outlet_->Finish(grpc::Status::CANCELLED); }

  void OnDone() override {
    outlet_->Detach();
    if (!node_.empty()) {
      runtime_.Disconnect(link_);
      Log(LogLevel::kInfo, "link-closed", {{"node", node_.value()}, {"incarnation", incarnation_}});
    }
    delete this;
  }

 private:
  absl::Status HandleHello() {
    if (!incoming_.has_hello()) return absl::FailedPreconditionError("the first message of a link must be a hello");
    LLM_ASSIGN_OR_RETURN(int protocol, AgreeOnProtocol(incoming_.hello()));
    LLM_ASSIGN_OR_RETURN(core::WorkerConnected connected, ToModel(incoming_.hello()));
    outlet_->set_protocol_version(protocol);
    node_ = connected.node.id;
    incarnation_ = connected.node.incarnation;
    Log(LogLevel::kInfo, "link-open", {{"node", node_.value()},
                                       {"incarnation", incarnation_},
                                       {"build", connected.node.build_id},
                                       {"protocol", protocol},
                                       {"devices", connected.node.devices.size()},
                                       {"shims", connected.shims.size()}});
    connected.link = link_;
    runtime_.Connect(std::move(connected), outlet_);
    return absl::OkStatus();
  }

  absl::Status HandleMessage() {
    switch (incoming_.message_case()) {
      case v1::AgentMessage::kHello: return absl::FailedPreconditionError("a link has one hello, its first message");
      case v1::AgentMessage::kHeartbeat: return HandleHeartbeat();
      case v1::AgentMessage::kProbeResult:
        runtime_.Tell(ToModel(node_, incoming_.probe_result()));
        return absl::OkStatus();
      case v1::AgentMessage::kPreflightResult:
        runtime_.Tell(ToModel(node_, incoming_.preflight_result()));
        return absl::OkStatus();
      case v1::AgentMessage::kRankUpdate: {
        LLM_ASSIGN_OR_RETURN(core::RankChanged changed, ToModel(node_, incoming_.rank_update()));
        runtime_.Tell(std::move(changed));
        return absl::OkStatus();
      }
      case v1::AgentMessage::kGangReleased:
        runtime_.Tell(core::GangReleased{node_, ToModel(incoming_.gang_released().generation())});
        return absl::OkStatus();
      case v1::AgentMessage::kProgress:
        // Every rank may report; what a job shows is rank 0's.
        if (incoming_.progress().rank() == 0) {
          runtime_.ReportProgress(ToModel(incoming_.progress().generation()), ToModel(incoming_.progress()));
        }
        return absl::OkStatus();
      case v1::AgentMessage::kStore: return HandleStore();
      case v1::AgentMessage::kCheckpointCommit:
        runtime_.Tell(ToModel(node_, incoming_.checkpoint_commit()));
        return absl::OkStatus();
      case v1::AgentMessage::kInspection:
        runtime_.DeliverInspection(node_, incoming_.inspection().request_id(), ToModel(incoming_.inspection()));
        return absl::OkStatus();
      case v1::AgentMessage::MESSAGE_NOT_SET: break;
    }
    // From a newer agent, which may say more than we know.
    if (!std::exchange(unknown_seen_, true)) Log(LogLevel::kInfo, "link-unknown-message", {{"node", node_.value()}});
    return absl::OkStatus();
  }

  absl::Status HandleHeartbeat() {
    // Answered at once, whatever the disk does, so that the host knows its link to be alive; but what the answer
    // confirms is only what is durable, and that may be one heartbeat behind.
    int64_t sequence = incoming_.heartbeat().sequence();
    runtime::HostReport report = {.standbys_ready = incoming_.heartbeat().standbys_ready(),
                                  .standby_memory_bytes = incoming_.heartbeat().standby_memory_bytes()};
    runtime_.Heartbeat(link_, node_, incarnation_, report,
                       [durable = durable_, sequence] { durable->store(sequence); });
    v1::CoordinatorMessage message;
    message.mutable_heartbeat()->set_durable_sequence(durable_->load());
    outlet_->Send(std::move(message));
    runtime_.ReportPulses(ToModel(incoming_.heartbeat()));
    return absl::OkStatus();
  }

  absl::Status HandleStore() {
    absl::StatusOr<runtime::StoreOperation> operation = ToModel(incoming_.store());
    // The answer repeats who asked, not what: a wait may last, and a value may be large.
    v1::StoreRequest asked;
    *asked.mutable_generation() = incoming_.store().generation();
    asked.set_request_id(incoming_.store().request_id());
    auto answer_with = [outlet = outlet_, asked](const runtime::StoreAnswer& answer) {
      v1::CoordinatorMessage message;
      *message.mutable_store() = ToProto(asked, answer);
      outlet->Send(std::move(message));
    };
    if (!operation.ok()) {
      answer_with({.error = std::string(operation.status().message())});
      return absl::OkStatus();
    }
    runtime_.Rendezvous(ToModel(asked.generation()), {.link = link_, .request = asked.request_id()}, *operation,
                        answer_with);
    return absl::OkStatus();
  }

  runtime::Runtime& runtime_;
  const int64_t link_;
  const std::shared_ptr<LinkOutlet> outlet_;
  v1::AgentMessage incoming_;
  NodeId node_;
  int64_t incarnation_ = 0;
  bool unknown_seen_ = false;
  // The newest heartbeat of this link before which everything is durable. Set from the core's thread, which may
  // come to it after the link has ended.
  const std::shared_ptr<std::atomic<int64_t>> durable_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace

LinkReactor* WorkerLinkService::Connect(grpc::CallbackServerContext*) {
  return new Connection(runtime_);
}

grpc::ServerUnaryReactor* WorkerLinkService::PushLog(grpc::CallbackServerContext* context,
                                                     const v1::PushLogRequest* request, v1::PushLogReply*) {
  absl::StatusOr<runtime::LogPiece> piece =
      runtime::LogPiece{.data = request->data(), .next_offset = request->next_offset(), .end = request->end()};
  if (!request->error().empty()) {
    piece = absl::NotFoundError(absl::StrCat("host ", request->node(), ": ", request->error()));
  }
  // Whoever asked may have gone: no concern of the agent's.
  runtime_.logs().Deliver(NodeId(request->node()), request->request_id(), std::move(piece));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace llmctl::rpc
