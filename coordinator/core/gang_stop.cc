// Taking a gang down: tell the hosts, wait for those that have a link, give up on those that hold on.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/check.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"

namespace llmctl::core {
namespace {

std::string YieldReason(const Job& job) {
  if (job.time_limit_reached) return "the job has run for its time limit";
  return job.attempt->stop_reason.empty() ? "the job is being suspended" : job.attempt->stop_reason;
}

// What the stop asks of the hosts follows from the job alone, so that it can be repeated at any time.
StopRanks StopCommand(const Job& job) {
  StopRanks stop;
  stop.generation = CurrentGeneration(job);
  if (job.cancel_requested) {
    stop.grace = kStopGrace;
    stop.reason = "the job was cancelled";
  } else if (FirstCause(*job.attempt).has_value()) {
    stop.grace = kFailureGrace;
    stop.failed = true;
    stop.reason = "another part of the gang failed";
  } else if (job.attempt->stop == StopRequest::kYield) {
    stop.grace = kYieldGrace;
    stop.checkpoint_first = true;
    stop.reason = YieldReason(job);
  } else {
    stop.grace = kStopGrace;
    stop.reason = "the gang is over";
  }
  return stop;
}

void BeginStop(Turn& turn, Job& job) {
  AccountRunTime(turn, job);
  turn.state.run_time_since.erase(job.id);
  job.phase = JobPhase::kStopping;
  turn.Disarm(job.id);
  for (const NodeId& host : job.attempt->unreleased) SendStop(turn, job, host);
  ArmStopTimer(turn, job, absl::ZeroDuration());
  turn.Save(job);
  ConcludeIfReleased(turn, job);
}

// A stop that has become more urgent.
void HurryStop(Turn& turn, const Job& job) {
  turn.Disarm(job.id);
  for (const NodeId& host : job.attempt->unreleased) SendStop(turn, job, host);
  ArmStopTimer(turn, job, absl::ZeroDuration());
}

void ReleaseDevices(State& state, const GenerationId& generation, const NodeId& node) {
  std::erase_if(state.device_owner,
                [&](const auto& owned) { return owned.first.first == node && owned.second == generation; });
}

}  // namespace

void StopGang(Turn& turn, Job& job, StopRequest request) {
  CHECK(HasLiveGang(job.phase)) << job.id << " is " << JobPhaseName(job.phase);
  job.attempt->stop = request;
  turn.Save(job);
  if (job.phase == JobPhase::kStopping) {
    HurryStop(turn, job);
  } else {
    BeginStop(turn, job);
  }
}

void FailGang(Turn& turn, Job& job, Diagnosis diagnosis, std::string text, NodeId node) {
  CHECK(HasLiveGang(job.phase)) << job.id << " is " << JobPhaseName(job.phase);
  // A failure seen during a stop explains ranks that only suffered from it, but not those that failed on their own.
  bool explains = !job.attempt->failure.has_value() && !HasPrimaryRankFailure(*job.attempt);
  if (explains) {
    turn.Log(job, "failure", absl::StrCat("The attempt failed: ", text, "."));
    job.attempt->failure = GangFailure{std::move(diagnosis), std::move(text), std::move(node)};
  }
  if (job.phase != JobPhase::kStopping) {
    job.reason = "the gang is being stopped after a failure";
    BeginStop(turn, job);
  } else if (explains) {
    HurryStop(turn, job);
  }
}

void StopAfterRankFailure(Turn& turn, Job& job) {
  if (job.phase == JobPhase::kStopping) {
    // Only a yield is worth interrupting: its other ranks would wait for the one that is gone.
    if (job.attempt->stop == StopRequest::kYield) HurryStop(turn, job);
    return;
  }
  job.reason = "the gang is being stopped after a failure";
  BeginStop(turn, job);
}

void SendStop(Turn& turn, const Job& job, const NodeId& node) {
  StopRanks stop = StopCommand(job);
  stop.node = node;
  turn.SendToHost(node, std::move(stop));
}

void ReleaseHost(Turn& turn, Job& job, const NodeId& node) {
  ReleaseDevices(turn.state, CurrentGeneration(job), node);
  if (std::erase(job.attempt->unreleased, node) > 0) turn.Save(job);
  if (!HasLiveGang(job.phase)) return;
  for (const RankState& rank : job.attempt->ranks) {
    if (rank.node != node || rank.phase == RankPhase::kExited) continue;
    if (job.phase != JobPhase::kStopping) {
      FailGang(turn, job, SeenByCore("process-gone", FailureClass::kInfrastructure),
               absl::StrCat("host ", node.value(), " no longer has the process of a rank and does not know how it ",
                            "ended; the host was restarted, or its shim was killed"));
      return;
    }
  }
  ConcludeIfReleased(turn, job);
}

void OnGangReleased(Turn& turn, const GangReleased& event) {
  ReleaseDevices(turn.state, event.generation, event.node);
  turn.RequestPlan();
  auto found = turn.state.jobs.find(event.generation.job);
  if (found == turn.state.jobs.end()) return;
  Job& job = found->second;
  if (!job.attempt.has_value() || CurrentGeneration(job) != event.generation) return;
  if (MayHaveProcesses(*job.attempt, event.node)) ReleaseHost(turn, job, event.node);
}

void ConcludeIfReleased(Turn& turn, Job& job) {
  if (job.phase != JobPhase::kStopping) return;
  for (const NodeId& host : job.attempt->unreleased) {
    // A lost host is not waited for. One that is merely silent so far, after a start of the coordinator, is.
    auto node = turn.state.nodes.find(host);
    if (node != turn.state.nodes.end() && node->second.state == NodeState::kReady) return;
  }
  ConcludeGang(turn, job);
}

void ArmStopTimer(Turn& turn, const Job& job, absl::Duration extra) {
  turn.Arm({Timer::Purpose::kStop, job.id, job.attempt->generation, 0}, StopCommand(job).grace + kStopSlack + extra);
}

void OnStopTimer(Turn& turn, Job& job, int round) {
  const std::vector<NodeId>& held = job.attempt->unreleased;
  std::string hosts = absl::StrJoin(held, ", ", [](std::string* out, const NodeId& n) { out->append(n.value()); });
  if (round == 0) {
    for (const NodeId& host : held) {
      StopRanks kill = StopCommand(job);
      kill.node = host;
      kill.grace = absl::ZeroDuration();
      kill.checkpoint_first = false;
      turn.SendToHost(host, std::move(kill));
    }
    job.reason = absl::StrCat("waits for ", hosts, " to end its processes");
    turn.Save(job);
    turn.Arm({Timer::Purpose::kStop, job.id, job.attempt->generation, 1}, kStopGiveUp);
    return;
  }
  turn.Log(job, "unreleased",
           absl::StrCat(hosts, " did not confirm the end of its processes within ",
                        absl::FormatDuration(kStopGiveUp), " after they were killed; the job goes on without it and "
                        "its devices stay taken until it does. Look at the host."));
  ConcludeGang(turn, job);
}

}  // namespace llmctl::core
