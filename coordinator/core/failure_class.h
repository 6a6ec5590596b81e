// Why did a gang end? One rank fails; the others fail because of it. The first cause is what is reported and what
// decides about the next attempt.
//
// Told apart by what the exits say: a rank stopped by us is no cause; a rank whose collective failed (the trainer's
// "infrastructure" exit) is one only if no rank failed on its own and no host was lost; among equals the first seen.
#pragma once

#include <optional>
#include <string>

#include "coordinator/model/job.h"

namespace llmctl::core {

struct Cause {
  FailureClass failure_class = FailureClass::kNone;
  std::string text;  // for a person: which rank, where, what
};

// Finished its work.
bool ExitedWell(const RankExit& exit);
// Ended because it was asked to: no failure.
bool EndedOnRequest(const RankExit& exit);
// kNone for the two above.
FailureClass ClassifyExit(const RankExit& exit);

// A rank failed on its own: not merely a victim of another's end.
bool HasPrimaryRankFailure(const Attempt& attempt);

// Nothing when no rank failed and nothing else is recorded.
std::optional<Cause> FirstCause(const Attempt& attempt);

}  // namespace llmctl::core
