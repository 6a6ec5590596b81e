// Time has passed. A timer whose job has moved on was disarmed and is not found.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/job_lifecycle.h"
#include "coordinator/core/node_ledger.h"

namespace llmctl::core {
namespace {

void OnProbeTimer(Turn& turn, Job& job) {
  std::string silent;
  const std::map<NodeId, std::string>& answers = turn.state.checks[job.id].digests;
  for (const NodeId& host : HostsOf(*job.attempt)) {
    if (!answers.contains(host)) absl::StrAppend(&silent, silent.empty() ? "" : ", ", host.value());
  }
  FailGang(turn, job, SeenByCore("check-timeout", FailureClass::kInfrastructure),
           absl::StrCat(silent, " did not finish the check of the checkpoint directory ",
                        job.requirements.checkpoint_directory, " within ", absl::FormatDuration(kProbeDeadline),
                        "; its file system may hang"));
}

void OnStartTimer(Turn& turn, Job& job) {
  int ready = 0;
  for (const RankState& rank : job.attempt->ranks) ready += rank.phase == RankPhase::kRunning;
  FailGang(turn, job, SeenByCore("start-timeout", FailureClass::kUnknown),
           absl::StrCat("only ", ready, " of ", job.attempt->ranks.size(), " ranks were ready within ",
                        absl::FormatDuration(kStartDeadline)));
}

void OnTimeLimit(Turn& turn, Job& job) {
  job.time_limit_reached = true;
  job.suspend_requested = false;
  job.reason = "its time limit is reached; it saves a last checkpoint";
  turn.Log(job, "time-limit", "The job has reached its time limit.");
  StopGang(turn, job, StopRequest::kYield);
}

void OnGraceTimer(Turn& turn) {
  std::vector<NodeId> silent;
  for (const auto& [id, node] : turn.state.nodes) {
    if (node.state == NodeState::kReady && !turn.state.connected.contains(id)) silent.push_back(id);
  }
  for (const NodeId& id : silent) LoseHost(turn, id, "it did not come back after the coordinator was started");
}

void OnNodeTimer(Turn& turn, const Timer& timer) {
  switch (timer.purpose) {
    case Timer::Purpose::kDrain: OnDrainTimer(turn, timer.node); return;
    case Timer::Purpose::kPreflight: OnPreflightTimer(turn, timer.node); return;
    case Timer::Purpose::kParole: EndParole(turn, timer.node); return;
    // Without it, what follows the step goes on.
    case Timer::Purpose::kBurnIn: return;
    case Timer::Purpose::kBackoff:
    case Timer::Purpose::kProbe:
    case Timer::Purpose::kStart:
    case Timer::Purpose::kStop:
    case Timer::Purpose::kTimeLimit:
    case Timer::Purpose::kGrace: break;
  }
  CHECK(false) << timer.node << " has a timer that is a job's";
}

}  // namespace

void OnTimerFired(Turn& turn, const TimerFired& event) {
  auto found = turn.state.timers.find(event.timer);
  if (found == turn.state.timers.end()) return;
  Timer timer = found->second;
  turn.state.timers.erase(found);
  if (timer.purpose == Timer::Purpose::kGrace) {
    OnGraceTimer(turn);
    return;
  }
  if (!timer.node.empty()) {
    OnNodeTimer(turn, timer);
    return;
  }
  Job& job = turn.state.jobs.at(timer.job);
  CHECK_EQ(timer.generation, job.last_generation) << "timers of " << job.id << " end with their generation";
  switch (timer.purpose) {
    case Timer::Purpose::kBackoff: QueueAgain(turn, job, job.reason, absl::ZeroDuration()); return;
    case Timer::Purpose::kProbe: OnProbeTimer(turn, job); return;
    case Timer::Purpose::kStart: OnStartTimer(turn, job); return;
    case Timer::Purpose::kStop: OnStopTimer(turn, job, timer.round); return;
    case Timer::Purpose::kTimeLimit: OnTimeLimit(turn, job); return;
    case Timer::Purpose::kGrace:
    case Timer::Purpose::kDrain:
    case Timer::Purpose::kPreflight:
    case Timer::Purpose::kBurnIn:
    case Timer::Purpose::kParole: return;  // above
  }
}

}  // namespace llmctl::core
