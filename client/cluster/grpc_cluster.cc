#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "client/cluster/cluster.h"
#include "common/base/status.h"
#include "llmctl/v1/admin.grpc.pb.h"
#include "llmctl/v1/jobs.grpc.pb.h"
#include "llmctl/v1/nodes.grpc.pb.h"

namespace llmctl::client {
namespace {

std::chrono::system_clock::time_point FromNow(absl::Duration d) { return absl::ToChronoTime(absl::Now() + d); }

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class GrpcCluster final : public Cluster {
 public:
  GrpcCluster(CoordinatorAddress address, absl::Duration timeout) : address_(std::move(address)), timeout_(timeout) {}

  absl::StatusOr<v1::SubmitReply> Submit(const v1::SubmitRequest& request) override {
    return CallJobs<v1::SubmitReply>(&v1::Jobs::Stub::Submit, request);
  }
  absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request) override {
    return CallJobs<v1::Job>(&v1::Jobs::Stub::Get, request);
  }
  absl::StatusOr<v1::ListJobsReply> ListJobs(const v1::ListJobsRequest& request) override {
    return CallJobs<v1::ListJobsReply>(&v1::Jobs::Stub::List, request);
  }
  absl::StatusOr<v1::JobReply> Cancel(const v1::CancelJobRequest& request) override {
    return CallJobs<v1::JobReply>(&v1::Jobs::Stub::Cancel, request);
  }
  absl::StatusOr<v1::JobReply> Suspend(const v1::SuspendJobRequest& request) override {
    return CallJobs<v1::JobReply>(&v1::Jobs::Stub::Suspend, request);
  }
  absl::StatusOr<v1::JobReply> Resume(const v1::ResumeJobRequest& request) override {
    return CallJobs<v1::JobReply>(&v1::Jobs::Stub::Resume, request);
  }
  absl::StatusOr<v1::DeleteJobReply> Delete(const v1::DeleteJobRequest& request) override {
    return CallJobs<v1::DeleteJobReply>(&v1::Jobs::Stub::Delete, request);
  }
  absl::StatusOr<v1::ReadLogReply> ReadLog(const v1::ReadLogRequest& request) override {
    return CallJobs<v1::ReadLogReply>(&v1::Jobs::Stub::ReadLog, request);
  }
  absl::StatusOr<v1::ReadLogReply> ReadLogOnce(const v1::ReadLogRequest& request) override {
    LLM_RETURN_IF_ERROR(WithAddress(Dial()));
    grpc::ClientContext context;
    context.set_deadline(FromNow(timeout_));
    v1::ReadLogReply reply;
    LLM_RETURN_IF_ERROR(ToAbsl(jobs_->ReadLog(&context, request, &reply)));
    return reply;
  }
  absl::StatusOr<v1::ListCheckpointsReply> ListCheckpoints(const v1::ListCheckpointsRequest& request) override {
    return CallJobs<v1::ListCheckpointsReply>(&v1::Jobs::Stub::ListCheckpoints, request);
  }
  absl::StatusOr<v1::ListEventsReply> ListEvents(const v1::ListEventsRequest& request) override {
    return CallJobs<v1::ListEventsReply>(&v1::Jobs::Stub::ListEvents, request);
  }
  absl::StatusOr<v1::ListNodesReply> ListNodes(const v1::ListNodesRequest& request) override {
    return CallNodes<v1::ListNodesReply>(&v1::Nodes::Stub::List, request);
  }
  absl::StatusOr<v1::Node> GetNode(const v1::GetNodeRequest& request) override {
    return CallNodes<v1::Node>(&v1::Nodes::Stub::Get, request);
  }
  absl::StatusOr<v1::Node> CordonNode(const v1::CordonNodeRequest& request) override {
    return CallNodes<v1::Node>(&v1::Nodes::Stub::Cordon, request);
  }
  absl::StatusOr<v1::Node> UncordonNode(const v1::UncordonNodeRequest& request) override {
    return CallNodes<v1::Node>(&v1::Nodes::Stub::Uncordon, request);
  }
  absl::StatusOr<v1::Node> DrainNode(const v1::DrainNodeRequest& request) override {
    return CallNodes<v1::Node>(&v1::Nodes::Stub::Drain, request);
  }

  absl::StatusOr<v1::VersionReply> GetVersion(absl::Duration patience) override {
    return Call<v1::VersionReply>(
        [&](grpc::ClientContext& context, v1::VersionReply& reply) {
          return admin_->GetVersion(&context, v1::GetVersionRequest(), &reply);
        },
        std::min(patience, timeout_));
  }
  absl::Status Backup(const std::function<bool(const std::string&)>& on_piece) override {
    LLM_RETURN_IF_ERROR(WithAddress(Dial()));
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::BackupPiece>> stream = admin_->Backup(&context, v1::BackupRequest());
    v1::BackupPiece piece;
    bool wanted = true;
    while (wanted && stream->Read(&piece)) wanted = on_piece(piece.data());
    if (!wanted) context.TryCancel();
    grpc::Status status = stream->Finish();
    return wanted ? WithAddress(ToAbsl(status)) : absl::OkStatus();
  }
  absl::StatusOr<v1::ListQuarantineReply> ListQuarantine() override {
    return Call<v1::ListQuarantineReply>([&](grpc::ClientContext& context, v1::ListQuarantineReply& reply) {
      return admin_->ListQuarantine(&context, v1::ListQuarantineRequest(), &reply);
    });
  }
  absl::Status ReleaseQuarantine(const v1::ReleaseQuarantineRequest& request) override {
    return Call<v1::ReleaseQuarantineReply>([&](grpc::ClientContext& context, v1::ReleaseQuarantineReply& reply) {
             return admin_->ReleaseQuarantine(&context, request, &reply);
           })
        .status();
  }

  absl::Status WatchJob(const v1::WatchJobRequest& request, absl::Duration longest, const OnJob& on_job) override {
    LLM_RETURN_IF_ERROR(Dial());
    grpc::ClientContext context;
    context.set_deadline(FromNow(longest));
    std::unique_ptr<grpc::ClientReader<v1::Job>> stream = jobs_->Watch(&context, request);
    v1::Job job;
    bool wanted = true;
    while (wanted && stream->Read(&job)) wanted = on_job(job);
    if (!wanted) context.TryCancel();
    grpc::Status status = stream->Finish();
    if (!wanted || status.ok()) return absl::OkStatus();
    Hang();
    return ToAbsl(status);
  }

 private:
  // Connects if there is no connection. The address is looked up here, hence anew after each failure.
  absl::Status Dial() {
    if (jobs_ != nullptr) return absl::OkStatus();
    LLM_ASSIGN_OR_RETURN(std::string target, address_.Resolve());
    grpc::ChannelArguments arguments;
    // Each dial is a connection of its own: a shared one would sit out the back-off of the one before.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(64 << 20);
    auto channel = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    jobs_ = v1::Jobs::NewStub(channel);
    nodes_ = v1::Nodes::NewStub(channel);
    admin_ = v1::Admin::NewStub(channel);
    return absl::OkStatus();
  }

  void Hang() {
    jobs_.reset();
    nodes_.reset();
    admin_.reset();
  }

  template <typename Reply, typename Request>
  absl::StatusOr<Reply> CallJobs(grpc::Status (v1::Jobs::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                                 const Request& request) {
    return Call<Reply>([&](grpc::ClientContext& context, Reply& reply) {
      return ((*jobs_).*method)(&context, request, &reply);
    });
  }

  template <typename Reply, typename Request>
  absl::StatusOr<Reply> CallNodes(grpc::Status (v1::Nodes::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                                  const Request& request) {
    return Call<Reply>([&](grpc::ClientContext& context, Reply& reply) {
      return ((*nodes_).*method)(&context, request, &reply);
    });
  }

  template <typename Reply, typename Function>
  absl::StatusOr<Reply> Call(const Function& call) {
    return Call<Reply>(call, timeout_);
  }

  template <typename Reply, typename Function>
  absl::StatusOr<Reply> Call(const Function& call, absl::Duration timeout) {
    const absl::Time deadline = absl::Now() + timeout;
    absl::Duration pause = absl::Milliseconds(20);
    while (true) {
      absl::Status status = Dial();
      if (status.ok()) {
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(deadline));
        Reply reply;
        status = ToAbsl(call(context, reply));
        if (status.ok()) return reply;
      }
      if (!absl::IsUnavailable(status) || absl::Now() + pause >= deadline) return WithAddress(status);
      Hang();
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(pause));
      pause = std::min(pause * 2, absl::Seconds(1));
    }
  }

  // Who could not be reached is worth knowing; what a coordinator answered speaks for itself.
  absl::Status WithAddress(const absl::Status& status) const {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    absl::StatusOr<std::string> target = address_.Resolve();
    return Annotate(status, "coordinator ", target.ok() ? *target : address_.value, " (from ", address_.origin, ")");
  }

  const CoordinatorAddress address_;
  const absl::Duration timeout_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

}  // namespace

std::unique_ptr<Cluster> MakeCluster(CoordinatorAddress address, absl::Duration timeout) {
  return std::make_unique<GrpcCluster>(std::move(address), timeout);
}

}  // namespace llmctl::client
