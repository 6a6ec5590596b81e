#include "simulator/mutants.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::simulator {
namespace {

constexpr std::pair<Mutant, const char*> kNames[] = {
    {Mutant::kNone, "none"},
    {Mutant::kNoFencing, "no-fencing"},
    {Mutant::kSendBeforePersist, "send-before-persist"},
    {Mutant::kLeaseFromSending, "lease-from-sending"},
    {Mutant::kLoseIdempotency, "lose-idempotency"},
    {Mutant::kFreeTwice, "free-twice"},
    {Mutant::kReleaseTooEarly, "release-too-early"},
    {Mutant::kApplyStalePlan, "apply-stale-plan"},
    {Mutant::kStartHalfGang, "start-half-gang"},
    {Mutant::kForgetCancel, "forget-cancel"},
    {Mutant::kForgetCounters, "forget-counters"},
    {Mutant::kLeaveTerminal, "leave-terminal"},
    {Mutant::kAdoptOldGenerations, "adopt-old-generations"},
    {Mutant::kKeepBackoff, "keep-backoff"},
    {Mutant::kAdmitOldIncarnation, "admit-old-incarnation"},
    {Mutant::kDropOutbox, "drop-outbox"},
    {Mutant::kCommitWithoutTerm, "commit-without-term"},
    {Mutant::kAdoptTwice, "adopt-twice"},
    {Mutant::kConfirmTooEarly, "confirm-too-early"},
    {Mutant::kHideShims, "hide-shims"},
    {Mutant::kLoseJobRecords, "lose-job-records"},
    {Mutant::kKeepRendezvous, "keep-rendezvous"},
    {Mutant::kLeaseRunsInCommit, "lease-runs-in-commit"},
    {Mutant::kRepeatStartToAnother, "repeat-start-to-another"},
    {Mutant::kFreeReturned, "free-returned"},
};

}  // namespace

std::string MutantName(Mutant mutant) {
  for (const auto& [known, name] : kNames) {
    if (known == mutant) return name;
  }
  return "unnamed";
}

bool ParseMutant(const std::string& name, Mutant* mutant) {
  for (const auto& [known, known_name] : kNames) {
    if (name != known_name) continue;
    *mutant = known;
    return true;
  }
  return false;
}

std::string MutantNames() {
  std::string names;
  for (const auto& [mutant, name] : kNames) absl::StrAppend(&names, " ", name);
  return names;
}

}  // namespace llmctl::simulator
