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

// The stream's callbacks. Sink::closed is gRPC's last word: the stream may be deleted then, and only then.
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
    // A copy: the callee deletes this object.
    auto closed = sink_.closed;
    closed(status.ok() ? "the coordinator closed the link" : status.error_message());
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

// gRPC must not lose its last channel on a thread of its own: it would wait for itself and go on with freed memory.
// So the stream, which holds the channel too, is deleted before anybody hears that the link is closed, and the
// destructor waits for that.
class GrpcLink final : public CoordinatorLink {
 public:
  GrpcLink(const std::string& address, Sink sink)
      : state_(std::make_shared<State>()), stub_(v1::WorkerLink::NewStub(MakeChannel(address))) {
    Sink wrapped = {.message = std::move(sink.message),
                    .closed = [state = state_, closed = std::move(sink.closed)](std::string why) {
                      state->DeleteStream();
                      closed(std::move(why));
                    }};
    MutexLock lock(state_->mutex);
    state_->stream = std::make_unique<Stream>(*stub_, std::move(wrapped));
  }
  ~GrpcLink() override {
    GrpcLink::Cancel();
    MutexLock lock(state_->mutex);
    while (!state_->stream_deleted) state_->deleted.Wait(state_->mutex);
  }

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
    void DeleteStream() {
      std::unique_ptr<Stream> ended;
      {
        MutexLock lock(mutex);
        ended = std::move(stream);
      }
      ended.reset();
      MutexLock lock(mutex);
      stream_deleted = true;
      deleted.NotifyAll();
    }

    Mutex mutex;
    CondVar deleted;
    std::unique_ptr<Stream> stream ABSL_GUARDED_BY(mutex);
    bool stream_deleted ABSL_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<State> state_;
  const std::unique_ptr<v1::WorkerLink::Stub> stub_;
};

}  // namespace

std::unique_ptr<CoordinatorLink> CoordinatorLink::Dial(const std::string& address, Sink sink) {
  return std::make_unique<GrpcLink>(address, std::move(sink));
}

}  // namespace llmctl::agent
