// Hosts come, come back, and are lost.
//
// A Hello is the truth about a host: which processes it still has. What the coordinator believed is settled against
// it: live ranks are re-adopted and nothing is restarted, ranks that are gone fail their gang, processes of older
// generations are stopped, and their devices stay taken until the host confirms.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/node_ledger.h"

namespace llmctl::core {
namespace {

constexpr size_t kLivesKept = 4;

// Another agent has come from the same boot: this one is dead, and its Hello was held up.
bool IsReplaced(const State& state, const Node& hello) {
  auto lives = state.lives.find(hello.id);
  if (lives == state.lives.end()) return false;
  return std::any_of(lives->second.begin(), lives->second.end(), [&](const HostLife& life) {
    return life.boot_id == hello.boot_id && life.incarnation > hello.incarnation;
  });
}

void Remember(State& state, const Node& hello) {
  std::vector<HostLife>& lives = state.lives[hello.id];
  std::erase_if(lives, [&](const HostLife& life) { return life.boot_id == hello.boot_id; });
  lives.push_back({hello.boot_id, hello.incarnation});
  if (lives.size() > kLivesKept) lives.erase(lives.begin());
}

// Why the host may not come in; empty if it may.
std::string Refusal(const Turn& turn, const Node& known, const Node& hello) {
  if (IsReplaced(turn.state, hello)) {
    return absl::StrCat("node ", known.id.value(), ": agent number ", hello.incarnation, " (boot ", hello.boot_id,
                        ") has been replaced by a later one of the same boot");
  }
  bool other_boot = hello.boot_id != known.boot_id;
  if (hello.incarnation > known.incarnation || (hello.incarnation == known.incarnation && !other_boot)) return "";
  // After a wiped state directory the agent counts from one again. Nothing is at risk as long as no other agent has
  // the name at this moment; a late Hello of a dead agent has the boot id of one that came before.
  if (other_boot && !turn.state.connected.contains(known.id)) return "";
  return absl::StrCat("node ", known.id.value(), ": agent number ", hello.incarnation, " (boot ", hello.boot_id,
                      ") came after number ", known.incarnation, " (boot ", known.boot_id,
                      "); if two machines use this name, start one of them with another --node");
}

using Shims = std::map<GenerationId, std::vector<ShimReport>>;

struct Arrival {
  const Node& host;
  bool same_agent = false;  // the process that had the link before has it again
  Shims shims;
};

// What the host says to be on its devices, where no live gang has them.
void OwnByProcesses(State& state, const NodeId& node, const Shims& shims) {
  // A process has a device before a mere record of one that ended there: records of several generations may lie
  // about, and the release of one of them must not free what another still uses.
  for (bool exited : {false, true}) {
    for (const auto& [generation, reports] : shims) {
      for (const ShimReport& report : reports) {
        if ((report.phase == RankPhase::kExited) != exited) continue;
        state.device_owner.emplace(std::pair(node, report.device), generation);
      }
    }
  }
}

// The devices of the host, from what it says and what the live gangs have there.
void ReplaceOwners(State& state, const NodeId& node, const Shims& shims) {
  auto& owners = state.device_owner;
  owners.erase(owners.lower_bound({node, 0}), owners.lower_bound({node, std::numeric_limits<int>::max()}));
  for (const JobId& id : state.index.with_gang) {
    const Job& job = state.jobs.at(id);
    if (!HasLiveGang(job.phase)) continue;
    if (job.attempt->ranks_requested && !MayHaveProcesses(*job.attempt, node)) continue;
    for (const RankState& rank : job.attempt->ranks) {
      if (rank.node == node) state.device_owner[{node, rank.device}] = CurrentGeneration(job);
    }
  }
  OwnByProcesses(state, node, shims);
}

// Whether a process runs on a device that was taken to be free when the gang was placed: a machine of the same name
// had said so.
bool IsOccupied(const Attempt& attempt, const Arrival& arrival) {
  for (const auto& [generation, reports] : arrival.shims) {
    for (const ShimReport& report : reports) {
      if (report.phase == RankPhase::kExited) continue;
      for (const RankState& rank : attempt.ranks) {
        if (rank.node == arrival.host.id && rank.device == report.device) return true;
      }
    }
  }
  return false;
}

void ApplyReports(Turn& turn, const NodeId& node, const std::vector<ShimReport>& reports) {
  for (const ShimReport& report : reports) {
    OnRankChanged(turn, {node, report.generation, report.rank, report.phase, report.pid, report.exit});
  }
}

// Starts what the host has missed, unless its trainer is no longer the one that the others of the gang have.
void CatchUp(Turn& turn, Job& job, const NodeId& node) {
  const std::string& digest = turn.state.nodes.at(node).trainer_digest;
  if (job.attempt->trainer_digest.empty() || digest == job.attempt->trainer_digest) {
    RepeatStart(turn, job, node);
    return;
  }
  FailGang(turn, job, SeenByCore("trainer-replaced", FailureClass::kInfrastructure),
           absl::StrCat("host ", node.value(), " came back with another llm-trainer (digest ", digest.substr(0, 12),
                        ") than the gang was placed with (", job.attempt->trainer_digest.substr(0, 12), ")"));
}

void SettleGang(Turn& turn, Job& job, const Arrival& arrival) {
  const NodeId& node = arrival.host.id;
  const GenerationId generation = CurrentGeneration(job);
  if (!job.attempt->ranks_requested) {
    if (!IsOccupied(*job.attempt, arrival)) return CatchUp(turn, job, node);
    return FailGang(turn, job, SeenByCore("device-occupied", FailureClass::kInfrastructure),
                    absl::StrCat("host ", node.value(), " came back with processes on devices that were free before"));
  }
  auto own = arrival.shims.find(generation);
  const std::vector<ShimReport> reports = own == arrival.shims.end() ? std::vector<ShimReport>() : own->second;
  std::set<int> reported;
  for (const ShimReport& report : reports) reported.insert(report.rank);
  bool never_seen = true;
  std::string missing;
  for (size_t i = 0; i < job.attempt->ranks.size(); ++i) {
    const RankState& rank = job.attempt->ranks[i];
    if (rank.node != node) continue;
    if (rank.phase != RankPhase::kAssigned) never_seen = false;
    if (rank.phase != RankPhase::kExited && !reported.contains(static_cast<int>(i))) missing = absl::StrCat(i);
  }
  if (reports.empty() && never_seen && job.phase == JobPhase::kStarting && arrival.same_agent) {
    // The start was lost with the old link. Another agent does not know what became of it: if two machines have this
    // name, the first may be starting the very ranks.
    CatchUp(turn, job, node);
    return;
  }
  if (reports.empty()) {
    ReleaseHost(turn, job, node);
    return;
  }
  ApplyReports(turn, node, reports);
  if (FindLiveGang(turn.state, generation) == nullptr) return;
  if (job.phase == JobPhase::kStopping) {
    SendStop(turn, job, node);
  } else if (!missing.empty()) {
    FailGang(turn, job, SeenByCore("process-gone", FailureClass::kInfrastructure),
             absl::StrCat("host ", node.value(), " came back without rank ", missing,
                          " and does not know how it ended"));
  }
}

// Of gangs that are over, or that have moved on without this host.
void StopStale(Turn& turn, const NodeId& node, const Shims& shims) {
  for (const auto& [generation, reports] : shims) {
    const Job* job = FindLiveGang(turn.state, generation);
    if (job != nullptr && MayHaveProcesses(*job->attempt, node)) continue;
    StopRanks stop;
    stop.node = node;
    stop.generation = generation;
    stop.reason = "the job has gone on without this generation";
    turn.SendToHost(node, std::move(stop));
  }
}

}  // namespace

void OnWorkerConnected(Turn& turn, const WorkerConnected& event) {
  const NodeId id = event.node.id;
  auto known = turn.state.nodes.find(id);
  if (known != turn.state.nodes.end()) {
    if (std::string reason = Refusal(turn, known->second, event.node); !reason.empty()) {
      turn.Send(RefuseWorker{id, event.node.incarnation, event.link, std::move(reason)});
      return;
    }
  }
  std::optional<Node> before;
  if (known != turn.state.nodes.end()) before = known->second;
  Node& node = turn.state.nodes[id];
  node = event.node;
  if (before.has_value()) node.standing = before->standing;
  node.state = NodeState::kReady;
  turn.Save(node);
  turn.state.connected.insert(id);
  Remember(turn.state, node);
  turn.Send(AdmitWorker{id, node.incarnation, event.link});

  RegisterNode(turn, node, before);

  bool same_agent =
      before.has_value() && before->incarnation == node.incarnation && before->boot_id == node.boot_id;
  Arrival arrival{.host = node, .same_agent = same_agent, .shims = {}};
  for (const ShimReport& report : event.shims) arrival.shims[report.generation].push_back(report);
  ReplaceOwners(turn.state, id, arrival.shims);
  StopStale(turn, id, arrival.shims);
  for (const JobId& job_id : turn.state.index.with_gang) {
    turn.WorkOn(job_id);
    Job& job = turn.state.jobs.at(job_id);
    if (!HasLiveGang(job.phase)) continue;
    const Attempt& attempt = *job.attempt;
    bool concerned = MayHaveProcesses(attempt, id);
    if (!attempt.ranks_requested) {
      for (const RankState& rank : attempt.ranks) concerned = concerned || rank.node == id;
    }
    if (concerned) SettleGang(turn, job, arrival);
  }
  turn.WorkOnEvent();
  // Gangs that did not survive this have let go of devices that may have a process of another generation: an older one,
  // or one that a store from a backup does not know.
  OwnByProcesses(turn.state, id, arrival.shims);
  turn.RequestPlan();
}

void OnWorkerLost(Turn& turn, const WorkerLost& event) {
  auto found = turn.state.nodes.find(event.node);
  if (found == turn.state.nodes.end() || found->second.incarnation != event.incarnation) return;
  LoseHost(turn, event.node, event.reason);
}

void LoseHost(Turn& turn, const NodeId& id, const std::string& reason) {
  turn.WorkOn(id);
  Node& node = turn.state.nodes.at(id);
  if (node.state == NodeState::kLost) return;
  node.state = NodeState::kLost;
  turn.Save(node);
  turn.state.connected.erase(id);
  ForgetPreflight(turn, id);
  for (const JobId& job_id : turn.state.index.with_gang) {
    turn.WorkOn(job_id);
    Job& job = turn.state.jobs.at(job_id);
    if (!HasLiveGang(job.phase)) continue;
    const Attempt& attempt = *job.attempt;
    bool ranks_left = false;
    for (const RankState& rank : attempt.ranks) {
      ranks_left = ranks_left || (rank.node == id && rank.phase != RankPhase::kExited);
    }
    bool concerned = ranks_left && (!attempt.ranks_requested || MayHaveProcesses(attempt, id));
    if (concerned) {
      FailGang(turn, job, SeenByCore("host-lost", FailureClass::kInfrastructure),
               absl::StrCat("host ", id.value(), " is lost: ", reason));
    }
    if (HasLiveGang(job.phase)) ConcludeIfReleased(turn, job);
  }
  turn.WorkOnEvent();
  turn.RequestPlan();
}

}  // namespace llmctl::core
