// What becomes of a job when its gang is over.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/job_lifecycle.h"
#include "coordinator/core/node_ledger.h"
#include "coordinator/core/restart_policy.h"

namespace llmctl::core {
namespace {

// Devices that were never asked for a process need no release. All others wait for their hosts' word, even of hosts
// that are not waited for: one that counted as released, as a machine of its name had no process, may be back with its
// own.
void ReleaseUnusedDevices(State& state, const Job& job) {
  if (job.attempt->ranks_requested) return;
  GenerationId generation = CurrentGeneration(job);
  std::erase_if(state.device_owner, [&](const auto& owned) { return owned.second == generation; });
}

void AddOnce(std::vector<NodeId>& nodes, const NodeId& node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

// What the failure says about the node, and what the job has from that.
void BlameNode(Turn& turn, Job& job, const Cause& cause) {
  if (cause.node.empty()) return;
  if (cause.diagnosis.outlook == Outlook::kOtherNode) AddOnce(job.avoided_nodes, cause.node);
  if (cause.diagnosis.strike <= 0) return;
  AddOnce(job.accused_nodes, cause.node);
  // A job that breaks on one node after the other accuses itself.
  double weight = cause.diagnosis.strike * std::exp2(1.0 - static_cast<double>(job.accused_nodes.size()));
  StrikeNode(turn, cause.node,
             {.weight = weight, .reason = absl::StrCat(cause.diagnosis.rule, ": ", cause.text), .job = job.id});
}

void RetryOrFail(Turn& turn, Job& job, const Cause& cause) {
  BlameNode(turn, job, cause);
  job.failure = cause.diagnosis;
  job.first_cause = cause.text;
  Verdict verdict = JudgeFailure(job, cause.diagnosis);
  if (!verdict.retry) {
    EndJob(turn, job, JobPhase::kFailed, absl::StrCat(cause.text, verdict.note));
    return;
  }
  std::string text = absl::StrCat("Attempt ", job.attempt->number, " failed (", DescribeDiagnosis(cause.diagnosis),
                                  "): ", cause.text, verdict.note, ".");
  if (job.suspend_requested) {
    turn.Log(job, "restarting", text);
    MarkSuspended(turn, job);
  } else {
    QueueAgain(turn, job, std::move(text), verdict.backoff);
  }
}

// Of a gang that was asked to end, and did.
std::string ResumeText(const Job& job) {
  const std::string& why = job.attempt->stop_reason;
  if (why.empty()) return "The job is resumed.";
  std::string from = job.checkpoints.empty() ? "from the beginning"
                                             : absl::StrCat("from step ", job.checkpoints.back().step);
  return absl::StrCat("The job has stopped because ", why, "; it goes on ", from, ".");
}

}  // namespace

bool AllRanksSucceeded(const Attempt& attempt) {
  for (const RankState& rank : attempt.ranks) {
    if (!rank.exit.has_value() || !ExitedWell(*rank.exit)) return false;
  }
  return true;
}

void ConcludeGang(Turn& turn, Job& job) {
  CHECK(HasLiveGang(job.phase)) << job.id << " is " << JobPhaseName(job.phase);
  const Attempt& attempt = *job.attempt;
  AccountRunTime(turn, job);
  turn.state.run_time_since.erase(job.id);
  turn.state.checks.erase(job.id);
  turn.Disarm(job.id);
  ReleaseUnusedDevices(turn.state, job);
  turn.Send(DropRendezvous{CurrentGeneration(job)});
  turn.RequestPlan();

  if (job.cancel_requested) {
    EndJob(turn, job, JobPhase::kCancelled, job.cancel_reason);
  } else if (AllRanksSucceeded(attempt)) {
    EndJob(turn, job, JobPhase::kSucceeded, "all ranks have finished");
  } else if (job.time_limit_reached) {
    job.failure = SeenByCore("time-limit", FailureClass::kScheduler, Outlook::kNever);
    job.first_cause.clear();
    EndJob(turn, job, JobPhase::kFailed,
           absl::StrCat("the job has run for its time limit of ", absl::FormatDuration(job.requirements.time_limit),
                        "; its last checkpoint is kept: submit it again with a longer timeLimit to go on"));
  } else if (std::optional<Cause> cause = FirstCause(attempt); cause.has_value()) {
    RetryOrFail(turn, job, *cause);
  } else if (attempt.stop == StopRequest::kNone) {
    RetryOrFail(turn, job,
                {SeenByCore("ranks-stopped", FailureClass::kInfrastructure),
                 "its ranks stopped without having been asked to", NodeId()});
  } else if (job.suspend_requested) {
    MarkSuspended(turn, job);
  } else {
    QueueAgain(turn, job, ResumeText(job), absl::ZeroDuration());
  }
}

void AccountRunTime(Turn& turn, Job& job) {
  auto since = turn.state.run_time_since.find(job.id);
  if (since == turn.state.run_time_since.end()) return;
  job.run_time += turn.now.monotonic - since->second;
  since->second = turn.now.monotonic;
  turn.Save(job);
}

}  // namespace llmctl::core
