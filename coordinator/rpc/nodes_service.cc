#include "coordinator/rpc/nodes_service.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/job_lookup.h"
#include "coordinator/rpc/job_mapping.h"

namespace llmctl::rpc {
namespace {

using DeviceOwners = std::map<std::pair<NodeId, int>, JobId>;

// A gang's devices are taken until its hosts have said that no process of it is left.
DeviceOwners FindOwners(const runtime::Snapshot& snapshot) {
  DeviceOwners owners;
  snapshot.VisitNewestFirst(0, [&](const runtime::JobView& view) {
    if (!view.job->attempt) return true;
    const Attempt& attempt = *view.job->attempt;
    for (const RankState& rank : attempt.ranks) {
      bool unreleased = std::find(attempt.unreleased.begin(), attempt.unreleased.end(), rank.node) !=
                        attempt.unreleased.end();
      if (unreleased || HasLiveGang(view.job->phase)) owners.emplace(std::pair(rank.node, rank.device), view.job->id);
    }
    return true;
  });
  return owners;
}

v1::Node ToProto(const Node& node, const DeviceOwners& owners, absl::Time last_seen) {
  v1::Node out;
  out.set_id(node.id.value());
  out.set_address(node.fabric_address);
  out.set_boot_id(node.boot_id);
  out.set_incarnation(node.incarnation);
  out.set_build_id(node.build_id);
  for (const DeviceInfo& device : node.devices) {
    v1::Device* to = out.add_devices();
    to->set_index(device.index);
    to->set_kind(device.kind);
    to->set_model(device.model);
    to->set_uuid(device.uuid);
    to->set_memory_bytes(device.memory_bytes);
  }
  for (auto it = owners.lower_bound({node.id, 0}); it != owners.end() && it->first.first == node.id; ++it) {
    (*out.mutable_jobs_by_device())[it->first.second] = it->second.value();
  }
  bool holds_devices = !out.jobs_by_device().empty();
  out.set_state(node.state == NodeState::kReady ? "ready" : holds_devices ? "fenced" : "lost");
  if (last_seen != absl::InfinitePast()) *out.mutable_last_seen() = ToTimestamp(last_seen);
  return out;
}

}  // namespace

grpc::ServerUnaryReactor* NodesService::List(grpc::CallbackServerContext* context, const v1::ListNodesRequest* request,
                                             v1::ListNodesReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<int> size = PageSize(request->page_size());
  if (!size.ok()) {
    reactor->Finish(ToGrpc(size.status()));
    return reactor;
  }
  std::shared_ptr<const runtime::Snapshot> snapshot = runtime_.snapshot();
  DeviceOwners owners = FindOwners(*snapshot);
  // A page token is the id of the last node of the page before.
  auto it = request->page_token().empty() ? snapshot->nodes().begin()
                                          : snapshot->nodes().upper_bound(NodeId(request->page_token()));
  for (; it != snapshot->nodes().end() && reply->nodes_size() < *size; ++it) {
    *reply->add_nodes() = ToProto(*it->second, owners, runtime_.LastSeen(it->first));
  }
  if (it != snapshot->nodes().end()) reply->set_next_page_token(reply->nodes(reply->nodes_size() - 1).id());
  reply->set_revision(snapshot->revision());
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* NodesService::Get(grpc::CallbackServerContext* context, const v1::GetNodeRequest* request,
                                            v1::Node* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  std::shared_ptr<const runtime::Snapshot> snapshot = runtime_.snapshot();
  auto it = snapshot->nodes().find(NodeId(request->id()));
  if (it == snapshot->nodes().end()) {
    reactor->Finish(ToGrpc(absl::NotFoundError(absl::StrCat(
        "no host is called '", request->id(), "': `llmctl nodes` shows the hosts that have connected"))));
    return reactor;
  }
  *reply = ToProto(*it->second, FindOwners(*snapshot), runtime_.LastSeen(it->first));
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace llmctl::rpc
