// The Nodes service: the hosts of the cluster. Reads come from the snapshots.
#pragma once

#include <map>
#include <string>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "common/base/ids.h"
#include "coordinator/model/node.h"
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
  grpc::ServerUnaryReactor* Cordon(grpc::CallbackServerContext* context, const v1::CordonNodeRequest* request,
                                   v1::Node* reply) override;
  grpc::ServerUnaryReactor* Uncordon(grpc::CallbackServerContext* context, const v1::UncordonNodeRequest* request,
                                     v1::Node* reply) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainNodeRequest* request,
                                  v1::Node* reply) override;

 private:
  // `owners`: the job that has a device.
  v1::Node View(const Node& node, const std::map<std::pair<NodeId, int>, JobId>& owners);
  // Answers with the node as the change has left it.
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, const std::string& id,
                                   runtime::UserRequest request, v1::Node* reply);

  runtime::Runtime& runtime_;
};

}  // namespace llmctl::rpc
