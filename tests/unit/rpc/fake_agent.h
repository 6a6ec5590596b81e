// An agent without processes: says hello, answers checks, and plays its ranks as the test tells it to.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "common/base/mutex.h"
#include "llmctl/v1/worker_link.grpc.pb.h"

namespace llmctl::rpc {

class FakeAgent {
 public:
  FakeAgent(const std::string& address, const std::string& node, int devices)
      : node_(node), stub_(v1::WorkerLink::NewStub(Dial(address))), stream_(stub_->Connect(&context_)) {
    v1::AgentMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_node(node);
    hello->set_boot_id("boot");
    hello->set_incarnation(1);
    hello->set_protocol_version(v1::LINK_PROTOCOL_NEWEST);
    hello->set_build_id("0.1.0+agent");
    hello->set_fabric_address("127.0.0.1");
    for (int i = 0; i < devices; ++i) {
      hello->add_devices()->set_index(i);
      hello->mutable_devices(i)->set_kind("cpu");
    }
    Send(message);
    reader_ = std::thread([this] { Read(); });
  }
  ~FakeAgent() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    if (heart_.joinable()) heart_.join();
    context_.TryCancel();
    reader_.join();
  }

  void Send(const v1::AgentMessage& message) {
    MutexLock lock(mutex_);
    stream_->Write(message);
  }
  void SendRank(const v1::Generation& generation, int rank, v1::RankPhase phase) {
    v1::AgentMessage message;
    v1::RankUpdate* update = message.mutable_rank_update();
    *update->mutable_generation() = generation;
    update->set_rank(rank);
    update->set_phase(phase);
    update->set_pid(1000 + rank);
    if (phase == v1::RANK_PHASE_EXITED) update->mutable_exit()->set_exit_code(0);
    Send(message);
  }
  void SendFailure(const v1::Generation& generation, int rank) {
    v1::AgentMessage message;
    v1::RankUpdate* update = message.mutable_rank_update();
    *update->mutable_generation() = generation;
    update->set_rank(rank);
    update->set_phase(v1::RANK_PHASE_EXITED);
    update->mutable_exit()->set_exit_code(1);
    Send(message);
  }
  void SendYielded(const v1::Generation& generation, int rank) {
    v1::AgentMessage message;
    v1::RankUpdate* update = message.mutable_rank_update();
    *update->mutable_generation() = generation;
    update->set_rank(rank);
    update->set_phase(v1::RANK_PHASE_EXITED);
    update->mutable_exit()->set_exit_code(10);
    Send(message);
  }
  void SendHeartbeat(int64_t sequence) {
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_sequence(sequence);
    Send(message);
  }
  void HeartbeatEvery(std::chrono::milliseconds interval) {
    heart_ = std::thread([this, interval] {
      for (int64_t sequence = 1; !EndedWithin(interval); ++sequence) SendHeartbeat(sequence);
    });
  }
  void SendReleased(const v1::Generation& generation) {
    v1::AgentMessage message;
    *message.mutable_gang_released()->mutable_generation() = generation;
    Send(message);
  }

  // It no longer sends the logs that it is asked for, as a host that stands still.
  void KeepLogs() { keeps_logs_ = true; }

  // The first message of this kind that has not been taken yet; an empty one after the deadline.
  v1::CoordinatorMessage Await(v1::CoordinatorMessage::MessageCase kind) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (true) {
      for (auto it = received_.begin(); it != received_.end(); ++it) {
        if (it->message_case() != kind) continue;
        v1::CoordinatorMessage message = std::move(*it);
        received_.erase(it);
        return message;
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return {};
    }
  }

 private:
  // A connection of its own, as every host has.
  static std::shared_ptr<grpc::Channel> Dial(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  bool EndedWithin(std::chrono::milliseconds time) {
    auto deadline = std::chrono::steady_clock::now() + time;
    MutexLock lock(mutex_);
    while (!ended_) {
      if (!changed_.WaitUntil(mutex_, deadline) && std::chrono::steady_clock::now() >= deadline) return false;
    }
    return true;
  }

  void Read() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      if (message.has_probe()) {
        v1::AgentMessage answer;
        *answer.mutable_probe_result()->mutable_generation() = message.probe().generation();
        answer.mutable_probe_result()->set_nonce(message.probe().nonce());
        answer.mutable_probe_result()->set_ok(true);
        answer.mutable_probe_result()->set_dataset_digest("digest");
        Send(answer);
      } else if (message.has_read_log() && !keeps_logs_) {
        PushLog(message.read_log());
      }
      MutexLock lock(mutex_);
      received_.push_back(message);
      changed_.NotifyAll();
    }
  }

  void PushLog(const v1::ReadLog& asked) {
    v1::PushLogRequest push;
    push.set_node(node_);
    push.set_incarnation(1);
    push.set_request_id(asked.request_id());
    push.set_data("log of rank " + std::to_string(asked.rank()) + " " + asked.stream());
    push.set_next_offset(asked.offset() + 20);
    push.set_end(true);
    grpc::ClientContext context;
    v1::PushLogReply reply;
    stub_->PushLog(&context, push, &reply);
  }

  const std::string node_;
  const std::unique_ptr<v1::WorkerLink::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::CoordinatorMessage>> stream_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::CoordinatorMessage> received_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> keeps_logs_{false};
  std::thread heart_;
  std::thread reader_;
};

}  // namespace llmctl::rpc
