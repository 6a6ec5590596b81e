// Why did a gang end? One rank fails; the others fail because of it. The first cause is what is reported and what
// decides about the next attempt.
//
// Told apart by order and kind: a rank stopped by us is no cause (it was terminated, it did not fail); one that fails
// as ranks do whose peer has gone (Diagnosis::cascade) is one only if no rank failed on its own and no host was lost;
// among equals the first seen.
#pragma once

#include <optional>
#include <string>

#include "coordinator/classify/failure_rules.h"
#include "coordinator/model/job.h"

namespace llmctl::core {

struct Cause {
  Diagnosis diagnosis;
  std::string text;  // for a person: which rank, where, what
  NodeId node;       // where it happened; may be empty
};

// Finished its work.
bool ExitedWell(const RankExit& exit);
// Ended because it was asked to: no failure.
bool EndedOnRequest(const RankExit& exit);
// Empty for the two above.
Diagnosis DiagnoseExit(const classify::FailureRules& rules, const RankExit& exit);

// What the core saw for itself.
Diagnosis SeenByCore(std::string rule, FailureClass failure_class, Outlook outlook = Outlook::kMayHelp);

// "infrastructure, rule killed", for histories.
std::string DescribeDiagnosis(const Diagnosis& diagnosis);

// A rank failed on its own: not merely a victim of another's end.
bool HasPrimaryRankFailure(const Attempt& attempt);

// Nothing when no rank failed and nothing else is recorded.
std::optional<Cause> FirstCause(const Attempt& attempt);

}  // namespace llmctl::core
