// What operators ask of nodes: cordon, uncordon, drain.
//
//   Open --cordon--> Cordoned        Open or Cordoned --drain--> Draining --nothing runs there--> Drained
//     ^------------------------------------ uncordon, from anywhere --------------------------------+
//
// Invariant: a node that is not open is given no rank, from the step that closed it on. A drain takes jobs through the
// same door as a suspend: a checkpoint at the next step, then back to the queue, at no cost to any budget. What has not
// left at the deadline is stopped; the node stays Draining for as long as a process may be left on it.
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/node_ledger.h"

namespace llmctl::core {
namespace {

void Reply(Turn& turn, RequestId request, absl::Status status = absl::OkStatus()) {
  ReplyToUser reply;
  reply.request = request;
  reply.status = std::move(status);
  turn.Send(std::move(reply));
}

// The node, or null after having answered that there is none.
Node* Find(Turn& turn, RequestId request, const NodeId& id, absl::string_view verb) {
  auto found = turn.state.nodes.find(id);
  if (found != turn.state.nodes.end()) return &found->second;
  Reply(turn, request,
        absl::NotFoundError(absl::StrCat(verb, " node ", id.value(), ": no host of this name has ever connected; ",
                                         "`llmctl nodes list` shows those that have")));
  return nullptr;
}

bool HasRankOn(const Job& job, const NodeId& node) {
  if (!HasLiveGang(job.phase)) return false;
  if (job.attempt->ranks_requested) return MayHaveProcesses(*job.attempt, node);
  for (const RankState& rank : job.attempt->ranks) {
    if (rank.node == node) return true;
  }
  return false;
}

// The job's gang leaves the node: gently if it can.
void Evict(Turn& turn, Job& job, const NodeId& node, StopRequest request) {
  job.attempt->stop_reason = absl::StrCat("host ", node.value(), " is being drained");
  job.reason = job.attempt->stop_reason;
  turn.Log(job, "draining", absl::StrCat("Host ", node.value(), " is being drained: the job is to go on elsewhere."));
  StopGang(turn, job, request);
}

void EvictAll(Turn& turn, const Node& node) {
  bool gently = node.standing.drain_deadline > absl::ZeroDuration();
  for (auto& [id, job] : turn.state.jobs) {
    turn.WorkOn(id);
    // A stop that is under way ends the gang by itself.
    if (!HasRankOn(job, node.id) || job.phase == JobPhase::kStopping) continue;
    Evict(turn, job, node.id, gently && job.phase == JobPhase::kRunning ? StopRequest::kYield : StopRequest::kPlain);
  }
  turn.WorkOnEvent();
}

}  // namespace

void OnNodeCordoned(Turn& turn, const NodeCordoned& event) {
  Node* node = Find(turn, event.request, event.node, "cordon");
  if (node == nullptr) return;
  Reply(turn, event.request);
  // One that is drained takes no ranks either.
  if (node->standing.service != NodeService::kOpen) return;
  node->standing.service = NodeService::kCordoned;
  node->standing.service_reason = event.reason;
  turn.Save(*node);
  turn.RequestPlan();
}

void OnNodeUncordoned(Turn& turn, const NodeUncordoned& event) {
  Node* node = Find(turn, event.request, event.node, "uncordon");
  if (node == nullptr) return;
  Reply(turn, event.request);
  Pardon(turn, *node);
  if (node->standing.service == NodeService::kOpen) return;
  turn.Disarm(node->id, Timer::Purpose::kDrain);
  node->standing.service = NodeService::kOpen;
  node->standing.service_reason.clear();
  node->standing.drain_deadline = absl::ZeroDuration();
  node->standing.drain_overdue = false;
  turn.Save(*node);
  turn.RequestPlan();
}

void OnNodeDrainStarted(Turn& turn, const NodeDrainStarted& event) {
  Node* node = Find(turn, event.request, event.node, "drain");
  if (node == nullptr) return;
  Reply(turn, event.request);
  if (node->standing.service == NodeService::kDrained) return;
  node->standing.service = NodeService::kDraining;
  node->standing.service_reason = event.reason;
  node->standing.drain_deadline = event.deadline;
  node->standing.drain_overdue = false;
  turn.Save(*node);
  turn.state.unsettled.insert(node->id);
  turn.Disarm(node->id, Timer::Purpose::kDrain);
  turn.Arm({.purpose = Timer::Purpose::kDrain, .node = node->id}, event.deadline);
  EvictAll(turn, *node);
  turn.RequestPlan();
}

void OnDrainTimer(Turn& turn, const NodeId& id) {
  Node& node = turn.state.nodes.at(id);
  node.standing.drain_overdue = true;
  turn.Save(node);
  for (auto& [job_id, job] : turn.state.jobs) {
    turn.WorkOn(job_id);
    if (!HasRankOn(job, id)) continue;
    // Whatever it was yielding for, its time is up; a stop without grace to save is as urgent as it gets already.
    if (job.phase == JobPhase::kStopping && job.attempt->stop != StopRequest::kYield) continue;
    Evict(turn, job, id, StopRequest::kPlain);
  }
  turn.WorkOnEvent();
}

bool IsEmpty(const State& state, const NodeId& node) {
  auto owned = state.device_owner.lower_bound({node, 0});
  return state.connected.contains(node) && (owned == state.device_owner.end() || owned->first.first != node);
}

bool IsUnsettled(const Node& node) {
  return node.standing.service == NodeService::kDraining || AwaitsPreflight(node.standing);
}

void SettleNodes(Turn& turn) {
  for (auto it = turn.state.unsettled.begin(); it != turn.state.unsettled.end();) {
    turn.WorkOn(*it);
    Node& node = turn.state.nodes.at(*it);
    if (node.standing.service == NodeService::kDraining && IsEmpty(turn.state, node.id)) {
      node.standing.service = NodeService::kDrained;
      node.standing.drain_overdue = false;
      turn.Disarm(node.id, Timer::Purpose::kDrain);
      turn.Save(node);
    }
    SettleLedger(turn, node);
    it = IsUnsettled(node) ? std::next(it) : turn.state.unsettled.erase(it);
  }
  turn.WorkOnEvent();
}

}  // namespace llmctl::core
