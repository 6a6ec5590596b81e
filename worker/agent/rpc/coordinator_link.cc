#include "worker/agent/rpc/coordinator_link.h"

#include <chrono>
#include <deque>
#include <utility>

#include <grpcpp/grpcpp.h>
#include "absl/strings/str_cat.h"

#include "common/base/mutex.h"
#include "llmctl/v1/worker_link.grpc.pb.h"

namespace llmctl::agent {
namespace {

// Progress is only the newest figures: with so much unsent, more of it helps nobody.
constexpr size_t kProgressQueueMax = 256;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  // The coordinator allows a ping a second; these notice a silent cut while no heartbeat is under way.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  // Each attempt connects anew; the back-off between attempts is ours.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);
  return grpc::CreateCustomChannel("dns:///" + address, grpc::InsecureChannelCredentials(), arguments);
}

// The stream's callbacks. Deletes itself when gRPC is done with it.
class Stream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::CoordinatorMessage> {
 public:
  Stream(v1::WorkerLink::Stub& stub, CoordinatorLink::Sink sink) : sink_(std::move(sink)) {
    stub.async()->Connect(&context_, this);
    // One hold for writes that other threads start.
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(v1::AgentMessage message) {
    MutexLock lock(mutex_);
    if (closing_ || (message.has_progress() && queue_.size() > kProgressQueueMax)) return;
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) StartWrite(&queue_.front());
  }

  void Cancel() {
    context_.TryCancel();
    Close();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Close();
    sink_.message(std::move(incoming_));
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    queue_.pop_front();
    if (ok && !closing_ && !queue_.empty()) StartWrite(&queue_.front());
  }

  void OnDone(const grpc::Status& status) override {
    sink_.closed(status.ok() ? "the coordinator closed the link" : status.error_message());
    delete this;
  }

 private:
  // No write starts after this.
  void Close() {
    {
      MutexLock lock(mutex_);
      if (closing_) return;
      closing_ = true;
    }
    RemoveHold();
  }

  const CoordinatorLink::Sink sink_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  Mutex mutex_;
  std::deque<v1::AgentMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

class GrpcLink final : public CoordinatorLink {
 public:
  GrpcLink(const std::string& address, Sink sink)
      : state_(std::make_shared<State>()), stub_(v1::WorkerLink::NewStub(MakeChannel(address))) {
    // The stream outlives this object until gRPC has let go of it, and may end before it.
    Sink wrapped = {.message = std::move(sink.message), .closed = [state = state_, closed = std::move(sink.closed)](
                                                                      std::string why) {
                      {
                        MutexLock lock(state->mutex);
                        state->stream = nullptr;
                      }
                      closed(std::move(why));
                    }};
    MutexLock lock(state_->mutex);
    state_->stream = new Stream(*stub_, std::move(wrapped));
  }
  ~GrpcLink() override { GrpcLink::Cancel(); }

  void Send(v1::AgentMessage message) override {
    MutexLock lock(state_->mutex);
    if (state_->stream != nullptr) state_->stream->Send(std::move(message));
  }

  absl::Status PushLog(const v1::PushLogRequest& request) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::PushLogReply reply;
    grpc::Status status = stub_->PushLog(&context, request, &reply);
    if (status.ok()) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  void Cancel() override {
    MutexLock lock(state_->mutex);
    if (state_->stream != nullptr) state_->stream->Cancel();
  }

 private:
  struct State {
    Mutex mutex;
    Stream* stream ABSL_GUARDED_BY(mutex) = nullptr;
  };
  const std::shared_ptr<State> state_;
  const std::unique_ptr<v1::WorkerLink::Stub> stub_;
};

}  // namespace

std::unique_ptr<CoordinatorLink> CoordinatorLink::Dial(const std::string& address, Sink sink) {
  return std::make_unique<GrpcLink>(address, std::move(sink));
}

}  // namespace llmctl::agent
