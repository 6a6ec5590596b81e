#include "coordinator/rpc/server.h"

#include <chrono>
#include <utility>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"

#include "common/base/listen_address.h"
#include "common/base/status.h"
#include "coordinator/rpc/admin_service.h"
#include "coordinator/rpc/jobs_service.h"
#include "coordinator/rpc/nodes_service.h"
#include "coordinator/rpc/worker_link_service.h"

namespace llmctl::rpc {
namespace {

// How long calls may go on once the server stops.
constexpr std::chrono::seconds kDrain{2};

class GrpcServer final : public Server {
 public:
  GrpcServer(runtime::Runtime& runtime, const std::string& scratch_directory)
      : jobs_(runtime), nodes_(runtime), link_(runtime), admin_(runtime, scratch_directory) {}
  ~GrpcServer() override { Stop(); }

  absl::Status Listen(const Options& options) {
    LLM_ASSIGN_OR_RETURN(ListenAddress listen, CheckListenAddress("--listen", options.listen, options.insecure_listen));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    // Two coordinators on one port would each get half of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // Agents ping an idle link more often than gRPC's default allows.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    builder.RegisterService(&jobs_);
    builder.RegisterService(&nodes_);
    builder.RegisterService(&link_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.listen, ": the address is in use or not of this host"));
    }
    for (const char* name : {"llmctl.v1.Jobs", "llmctl.v1.Nodes", "llmctl.v1.WorkerLink", "llmctl.v1.Admin"}) {
      server_->GetHealthCheckService()->SetServingStatus(name, true);
    }
    address_ = absl::StrCat(listen.host, ":", port);
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Stop() override {
    if (!server_) return;
    server_->GetHealthCheckService()->SetServingStatus(false);
    server_->Shutdown(std::chrono::system_clock::now() + kDrain);
    server_->Wait();
    server_.reset();
  }

 private:
  JobsService jobs_;
  NodesService nodes_;
  WorkerLinkService link_;
  AdminService admin_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, runtime::Runtime& runtime) {
  auto server = std::make_unique<GrpcServer>(runtime, options.scratch_directory);
  LLM_RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace llmctl::rpc
