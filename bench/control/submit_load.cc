#include "bench/control/submit_load.h"

#include <chrono>
#include <memory>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "llmctl/v1/jobs.grpc.pb.h"

namespace llmctl::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// What all clients share.
class Tally {
 public:
  explicit Tally(int clients) : running_(clients) {}

  void Begin(absl::Duration count_from, absl::Duration until) {
    MutexLock lock(mutex_);
    count_from_ = count_from;
    until_ = until;
  }

  // Whether the client is to go on.
  bool Record(absl::Duration began, absl::Duration ended, const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (!status.ok()) failure_ = {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
    if (began >= count_from_ && ended <= until_) latencies_.push_back(ended - began);
    if (ended < until_ && failure_.ok()) return true;
    if (--running_ == 0) all_ended_.NotifyAll();
    return false;
  }

  absl::StatusOr<LoadResult> Await() {
    MutexLock lock(mutex_);
    while (running_ > 0) all_ended_.Wait(mutex_);
    LLM_RETURN_IF_ERROR(Annotate(failure_, "submit"));
    double seconds = absl::ToDoubleSeconds(until_ - count_from_);
    return LoadResult{static_cast<double>(latencies_.size()) / seconds, std::move(latencies_)};
  }

 private:
  Mutex mutex_;
  CondVar all_ended_;
  absl::Duration count_from_ ABSL_GUARDED_BY(mutex_);
  absl::Duration until_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> latencies_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

class Client {
 public:
  Client(const LoadOptions& options, std::string key_prefix, Tally& tally)
      : key_prefix_(std::move(key_prefix)), tally_(tally) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(options.coordinator, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::Jobs::NewStub(channel_);
    *request_.mutable_spec() = options.spec;
  }

  absl::Status Connect() {
    auto deadline = std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience);
    if (channel_->WaitForConnected(deadline)) return absl::OkStatus();
    return absl::UnavailableError("the coordinator does not answer");
  }

  void Next() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
    request_.set_idempotency_key(absl::StrCat(key_prefix_, ++submitted_));
    absl::Duration began = Now().monotonic;
    stub_->async()->Submit(context_.get(), &request_, &reply_, [this, began](const grpc::Status& status) {
      if (tally_.Record(began, Now().monotonic, status)) Next();
    });
  }

 private:
  const std::string key_prefix_;
  Tally& tally_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Jobs::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SubmitRequest request_;
  v1::SubmitReply reply_;
  int64_t submitted_ = 0;
};

}  // namespace

absl::StatusOr<LoadResult> SubmitFor(const LoadOptions& options) {
  LLM_ASSIGN_OR_RETURN(std::string run, ReadFile("/proc/sys/kernel/random/uuid"));
  Tally tally(options.clients);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < options.clients; ++i) {
    std::string key_prefix = absl::StrCat(absl::StripSuffix(run, "\n"), "-", i, "-");
    clients.push_back(std::make_unique<Client>(options, std::move(key_prefix), tally));
    LLM_RETURN_IF_ERROR(clients.back()->Connect());
  }
  absl::Duration count_from = Now().monotonic + options.warmup;
  tally.Begin(count_from, count_from + options.time);
  for (auto& client : clients) client->Next();
  return tally.Await();
}

}  // namespace llmctl::bench
