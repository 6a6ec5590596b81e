// What the runtime has found out about the progress of a job. A finding about a generation that is no longer live, or
// is being stopped already, changes nothing.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/node_ledger.h"

namespace llmctl::core {

namespace {

// The one host that all suspects are on; empty if there is none such.
NodeId HostOf(const Attempt& attempt, const std::vector<int>& suspects) {
  NodeId host;
  for (int rank : suspects) {
    if (rank < 0 || rank >= static_cast<int>(attempt.ranks.size())) return NodeId();
    const NodeId& node = attempt.ranks[rank].node;
    if (!host.empty() && host != node) return NodeId();
    host = node;
  }
  return host;
}

}  // namespace

void OnJobHung(Turn& turn, const JobHung& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || job->phase == JobPhase::kStopping || !job->attempt->ranks_requested) return;
  Diagnosis hang = SeenByCore("hang", FailureClass::kInfrastructure);
  NodeId host = HostOf(*job->attempt, event.suspects);
  if (!host.empty()) {
    // Ranks stay where they were: a device or mount that is stuck would hold up every attempt.
    hang.outlook = Outlook::kOtherNode;
    hang.strike = kStrikeHung;
  }
  FailGang(turn, *job, std::move(hang), absl::StrCat("the job hangs: ", event.text), std::move(host));
}

void OnStragglerSeen(Turn& turn, const StragglerSeen& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || job->phase != JobPhase::kRunning) return;
  turn.Log(*job, "straggler", event.text);
}

}  // namespace llmctl::core
