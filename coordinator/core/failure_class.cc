#include "coordinator/core/failure_class.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::core {
namespace {

// Those of the trainer's exit codes (worker/contract/exit_codes.h, which the core may not see) that are no failure.
enum TrainerExit : int {
  kOk = 0,
  kYielded = 10,
};

bool HasFailed(const RankState& rank) {
  return rank.exit.has_value() && !ExitedWell(*rank.exit) && !EndedOnRequest(*rank.exit);
}

// Exits that were stored before there were rules have none.
Diagnosis DiagnosisOf(const RankExit& exit) {
  return exit.diagnosis.rule.empty() ? SeenByCore("unclassified", FailureClass::kUnknown) : exit.diagnosis;
}

std::string DescribeExit(const RankExit& exit) {
  std::string how;
  if (exit.start_failed) {
    how = "could not be started";
  } else if (exit.signal != 0) {
    how = absl::StrCat("was killed by signal ", exit.signal,
                       exit.signal == 9 ? " (by the kernel when memory runs out, or by hand)" : "");
  } else {
    how = absl::StrCat("ended with exit code ", exit.exit_code);
  }
  return exit.fatal_message.empty() ? how : absl::StrCat(how, ": ", exit.fatal_message);
}

}  // namespace

bool ExitedWell(const RankExit& exit) { return !exit.start_failed && exit.signal == 0 && exit.exit_code == kOk; }

bool EndedOnRequest(const RankExit& exit) {
  return exit.stopped_by_agent || (!exit.start_failed && exit.signal == 0 && exit.exit_code == kYielded);
}

Diagnosis DiagnoseExit(const classify::FailureRules& rules, const RankExit& exit) {
  if (ExitedWell(exit) || EndedOnRequest(exit)) return {};
  return rules.Diagnose(exit);
}

Diagnosis SeenByCore(std::string rule, FailureClass failure_class, Outlook outlook) {
  Diagnosis diagnosis;
  diagnosis.rule = std::move(rule);
  diagnosis.failure_class = failure_class;
  diagnosis.outlook = outlook;
  return diagnosis;
}

std::string DescribeDiagnosis(const Diagnosis& diagnosis) {
  return absl::StrCat(FailureClassName(diagnosis.failure_class), ", rule ", diagnosis.rule);
}

bool HasPrimaryRankFailure(const Attempt& attempt) {
  for (const RankState& rank : attempt.ranks) {
    if (HasFailed(rank) && !rank.exit->diagnosis.cascade) return true;
  }
  return false;
}

std::optional<Cause> FirstCause(const Attempt& attempt) {
  if (attempt.failure.has_value()) {
    return Cause{attempt.failure->diagnosis, attempt.failure->text, attempt.failure->node};
  }
  const RankState* first = nullptr;
  for (const RankState& rank : attempt.ranks) {
    if (!HasFailed(rank)) continue;
    auto order = [](const RankState& r) { return std::pair(r.exit->diagnosis.cascade, r.exit_order); };
    if (first == nullptr || order(rank) < order(*first)) first = &rank;
  }
  if (first == nullptr) return std::nullopt;
  return Cause{DiagnosisOf(*first->exit),
               absl::StrCat("rank ", first - attempt.ranks.data(), " on ", first->node.value(), " ",
                            DescribeExit(*first->exit)),
               first->node};
}

}  // namespace llmctl::core
