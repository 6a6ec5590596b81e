#include "coordinator/rpc/nodes_service.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/node_ledger.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/reason.h"
#include "coordinator/rpc/job_lookup.h"
#include "coordinator/rpc/job_mapping.h"

namespace llmctl::rpc {
namespace {

// As long as a gang may take for its last checkpoint anyway.
constexpr absl::Duration kDrainDeadlineDefault = absl::Minutes(5);
// Beyond it a number was meant in another unit.
constexpr absl::Duration kDrainDeadlineMost = absl::Hours(30 * 24);

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

// What a drain waits for.
std::string DescribeDrain(const Node& node, const v1::Node& view) {
  std::set<std::string> jobs;
  for (const auto& [device, job] : view.jobs_by_device()) jobs.insert(job);
  std::string waits = jobs.empty() ? "waits for the host to connect and say that nothing runs there"
                                   : absl::StrCat("waits for ", absl::StrJoin(jobs, ", "));
  if (!node.standing.drain_overdue) return waits;
  return absl::StrCat(waits, ", stopped after the deadline of ", absl::FormatDuration(node.standing.drain_deadline));
}

std::string ServiceReason(const Node& node, const v1::Node& view) {
  std::string reason = node.standing.service_reason;
  if (node.standing.service != NodeService::kDraining) return reason;
  return absl::StrCat(reason, reason.empty() ? "" : "; ", DescribeDrain(node, view));
}

void AddLedger(const NodeStanding& standing, v1::Node& out) {
  out.set_trust(NodeTrustName(standing.trust));
  out.set_trust_reason(standing.quarantine_reason);
  out.set_strike_score(core::StrikesOf(standing, Now().wall));
  for (const Strike& strike : standing.strikes) {
    v1::Strike* to = out.add_strikes();
    *to->mutable_time() = ToTimestamp(strike.time);
    to->set_weight(strike.weight);
    to->set_reason(strike.reason);
    to->set_job(strike.job.value());
  }
  out.set_preflight_pending(core::AwaitsPreflight(standing));
  if (!standing.preflight) return;
  v1::Preflight& preflight = *out.mutable_preflight();
  *preflight.mutable_time() = ToTimestamp(standing.preflight->time);
  preflight.set_boot_id(standing.preflight->boot_id);
  preflight.set_passed(standing.preflight->passed);
  preflight.set_failure(standing.preflight->failure);
  for (const PreflightCheck& check : standing.preflight->checks) {
    v1::PreflightCheck* to = preflight.add_checks();
    to->set_name(check.name);
    to->set_outcome(check.outcome);
    to->set_seconds(check.seconds);
    to->set_value(check.value);
    to->set_unit(check.unit);
    to->set_detail(check.detail);
  }
}

}  // namespace

v1::Node NodesService::View(const Node& node, const std::map<std::pair<NodeId, int>, JobId>& owners) {
  v1::Node out;
  out.set_id(node.id.value());
  out.set_address(node.fabric_address);
  out.set_boot_id(node.boot_id);
  out.set_incarnation(node.incarnation);
  out.set_build_id(node.build_id);
  out.set_trainer_digest(node.trainer_digest);
  for (const std::string& name : node.capabilities) out.add_capabilities(name);
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
  const runtime::HostPresence presence = runtime_.Presence(node.id);
  bool holds_devices = !out.jobs_by_device().empty();
  out.set_state(node.state == NodeState::kReady ? "ready" : holds_devices ? "fenced" : "lost");
  if (presence.last_seen != absl::InfinitePast()) *out.mutable_last_seen() = ToTimestamp(presence.last_seen);
  if (node.state == NodeState::kReady) {
    out.set_standbys_ready(presence.report.standbys_ready);
    out.set_standby_memory_bytes(presence.report.standby_memory_bytes);
  }
  out.set_service(NodeServiceName(node.standing.service));
  out.set_service_reason(ServiceReason(node, out));
  AddLedger(node.standing, out);
  out.set_refused(std::string(runtime_.CheckQuarantine(core::kNodeEntity, node.id.value()).message()));
  return out;
}

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
    *reply->add_nodes() = View(*it->second, owners);
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
  *reply = View(*it->second, FindOwners(*snapshot));
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* NodesService::Change(grpc::CallbackServerContext* context, const std::string& id,
                                               runtime::UserRequest request, v1::Node* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.Ask(std::move(request), [this, reactor, reply, node = NodeId(id)](const runtime::Reply& outcome) {
    if (outcome.status.ok()) {
      std::shared_ptr<const runtime::Snapshot> snapshot = runtime_.snapshot();
      // Published before the answer, and nodes are never forgotten.
      *reply = View(*snapshot->nodes().at(node), FindOwners(*snapshot));
    }
    reactor->Finish(ToGrpc(outcome.status));
  });
  return reactor;
}

grpc::ServerUnaryReactor* NodesService::Cordon(grpc::CallbackServerContext* context,
                                               const v1::CordonNodeRequest* request, v1::Node* reply) {
  if (absl::Status status = CheckReason(request->reason()); !status.ok()) return FinishNow(context, status);
  core::NodeCordoned change{.node = NodeId(request->id()), .reason = request->reason()};
  return Change(context, request->id(), std::move(change), reply);
}

grpc::ServerUnaryReactor* NodesService::Uncordon(grpc::CallbackServerContext* context,
                                                 const v1::UncordonNodeRequest* request, v1::Node* reply) {
  return Change(context, request->id(), core::NodeUncordoned{.node = NodeId(request->id())}, reply);
}

grpc::ServerUnaryReactor* NodesService::Drain(grpc::CallbackServerContext* context, const v1::DrainNodeRequest* request,
                                              v1::Node* reply) {
  absl::Status status = CheckReason(request->reason());
  if (request->deadline_ms() < 0 || absl::Milliseconds(request->deadline_ms()) > kDrainDeadlineMost) {
    status = absl::InvalidArgumentError(absl::StrCat("drain node ", request->id(), ": deadline_ms is ",
                                                     request->deadline_ms(), ": expected 0 (stop at once) to ",
                                                     absl::ToInt64Milliseconds(kDrainDeadlineMost), " (30 days)"));
  }
  if (!status.ok()) return FinishNow(context, status);
  core::NodeDrainStarted change{.node = NodeId(request->id()),
                                .reason = request->reason(),
                                .deadline = request->has_deadline_ms() ? absl::Milliseconds(request->deadline_ms())
                                                                       : kDrainDeadlineDefault};
  return Change(context, request->id(), std::move(change), reply);
}

}  // namespace llmctl::rpc
