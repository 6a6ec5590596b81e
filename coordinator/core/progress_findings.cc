// What the runtime has found out about the progress of a job. A finding about a generation that is no longer live, or
// is being stopped already, changes nothing.
#include "absl/strings/str_cat.h"

#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"

namespace llmctl::core {

void OnJobHung(Turn& turn, const JobHung& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || job->phase == JobPhase::kStopping || !job->attempt->ranks_requested) return;
  FailGang(turn, *job, SeenByCore("hang", FailureClass::kInfrastructure),
           absl::StrCat("the job hangs: ", event.text));
}

void OnStragglerSeen(Turn& turn, const StragglerSeen& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || job->phase != JobPhase::kRunning) return;
  turn.Log(*job, "straggler", event.text);
}

}  // namespace llmctl::core
