// What hosts say about ranks. A report of a generation that is no longer live, or that would take a rank back to
// an earlier phase (a late or repeated message), changes nothing.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"

namespace llmctl::core {
namespace {

int ExitsSeen(const Attempt& attempt) {
  int seen = 0;
  for (const RankState& rank : attempt.ranks) seen += rank.phase == RankPhase::kExited;
  return seen;
}

void OnRankExit(Turn& turn, Job& job, const RankExit& exit, const std::optional<Cause>& known) {
  if (AllRanksSucceeded(*job.attempt)) {
    if (job.phase == JobPhase::kStopping) return;  // concluded when the hosts have released it
    for (const NodeId& host : job.attempt->unreleased) SendStop(turn, job, host);
    ConcludeGang(turn, job);
    return;
  }
  if (ExitedWell(exit)) return;
  std::optional<Cause> cause = FirstCause(*job.attempt);
  // A rank that fails because another has gone may be heard of before that one.
  if (cause.has_value() && (!known.has_value() || known->text != cause->text)) {
    turn.Log(job, "rank-exited",
             absl::StrCat(known.has_value() ? "The first cause is another (" : "The attempt failed (",
                          DescribeDiagnosis(cause->diagnosis), "): ", cause->text, "."));
  }
  bool is_first = cause.has_value() && !known.has_value();
  if (is_first || job.phase != JobPhase::kStopping) StopAfterRankFailure(turn, job);
}

}  // namespace

void OnRankChanged(Turn& turn, const RankChanged& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || !job->attempt->ranks_requested) return;
  if (event.rank < 0 || event.rank >= static_cast<int>(job->attempt->ranks.size())) return;
  RankState& rank = job->attempt->ranks[event.rank];
  if (rank.node != event.node || event.phase <= rank.phase) return;
  if (event.phase == RankPhase::kExited && !event.exit.has_value()) return;

  std::optional<Cause> known = FirstCause(*job->attempt);
  int exits = ExitsSeen(*job->attempt);
  rank.phase = event.phase;
  if (event.pid != 0) rank.pid = event.pid;
  if (event.phase == RankPhase::kExited) {
    rank.exit = event.exit;
    rank.exit->diagnosis = DiagnoseExit(*turn.state.rules, *rank.exit);
    rank.exit_order = exits + 1;
  }
  turn.Save(*job);
  if (event.phase == RankPhase::kExited) OnRankExit(turn, *job, *event.exit, known);
  if (event.phase >= RankPhase::kRunning) MarkRunningIfReady(turn, *job);
}

}  // namespace llmctl::core
