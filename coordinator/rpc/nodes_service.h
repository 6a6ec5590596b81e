// The Nodes service: the hosts of the cluster, from the snapshots.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/nodes.grpc.pb.h"

namespace llmctl::rpc {

class NodesService final : public v1::Nodes::CallbackService {
 public:
  // `runtime` outlives the server.
  explicit NodesService(runtime::Runtime& runtime) : runtime_(runtime) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListNodesRequest* request,
                                 v1::ListNodesReply* reply) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetNodeRequest* request,
                                v1::Node* reply) override;

 private:
  runtime::Runtime& runtime_;
};

}  // namespace llmctl::rpc
