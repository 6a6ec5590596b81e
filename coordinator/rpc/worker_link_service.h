// The WorkerLink service: the connections of the agents.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/worker_link.grpc.pb.h"

namespace llmctl::rpc {

class WorkerLinkService final : public v1::WorkerLink::CallbackService {
 public:
  // `runtime` outlives the server.
  explicit WorkerLinkService(runtime::Runtime& runtime) : runtime_(runtime) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::CoordinatorMessage>* Connect(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* PushLog(grpc::CallbackServerContext* context, const v1::PushLogRequest* request,
                                    v1::PushLogReply* reply) override;

 private:
  runtime::Runtime& runtime_;
};

}  // namespace llmctl::rpc
