#include "coordinator/core/failure_class.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::core {
namespace {

// What the trainer's exit codes mean (worker/contract/exit_codes.h, which the core may not see). A test holds the
// two together.
enum TrainerExit : int {
  kOk = 0,
  kYielded = 10,
  kConfig = 64,
  kUser = 65,
  kOutOfMemory = 66,
  kInfrastructure = 67,
  kOrphaned = 68,
  kInternal = 70,
};

// The trainer's own word for it, where it had time to say one.
std::optional<FailureClass> ClassNamed(const std::string& name) {
  if (name == "config") return FailureClass::kConfig;
  if (name == "user") return FailureClass::kUser;
  if (name == "oom") return FailureClass::kOutOfMemory;
  if (name == "infrastructure" || name == "orphaned" || name == "internal") return FailureClass::kInfrastructure;
  return std::nullopt;
}

// The rank says that something else failed: a peer, a collective, its way to us.
bool BlamesAnother(const RankExit& exit) {
  if (exit.start_failed || exit.signal != 0) return false;
  return exit.exit_code == kInfrastructure || exit.exit_code == kOrphaned;
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

FailureClass ClassifyExit(const RankExit& exit) {
  if (ExitedWell(exit) || EndedOnRequest(exit)) return FailureClass::kNone;
  if (std::optional<FailureClass> named = ClassNamed(exit.fatal_class); named.has_value()) return *named;
  // Without a word of its own: a missing binary or a lack of memory on that host, a kill from outside, a crash.
  if (exit.start_failed || exit.signal != 0) return FailureClass::kInfrastructure;
  switch (exit.exit_code) {
    case kConfig: return FailureClass::kConfig;
    case kOutOfMemory: return FailureClass::kOutOfMemory;
    case kInfrastructure:
    case kOrphaned:
    case kInternal: return FailureClass::kInfrastructure;
    default: return FailureClass::kUser;
  }
}

bool HasPrimaryRankFailure(const Attempt& attempt) {
  for (const RankState& rank : attempt.ranks) {
    if (!rank.exit.has_value() || BlamesAnother(*rank.exit)) continue;
    if (ClassifyExit(*rank.exit) != FailureClass::kNone) return true;
  }
  return false;
}

std::optional<Cause> FirstCause(const Attempt& attempt) {
  if (attempt.failure.has_value()) return Cause{attempt.failure->failure_class, attempt.failure->text};
  const RankState* first = nullptr;
  for (const RankState& rank : attempt.ranks) {
    if (!rank.exit.has_value() || ClassifyExit(*rank.exit) == FailureClass::kNone) continue;
    if (first == nullptr) {
      first = &rank;
      continue;
    }
    auto order = [](const RankState& r) { return std::pair(BlamesAnother(*r.exit), r.exit_order); };
    if (order(rank) < order(*first)) first = &rank;
  }
  if (first == nullptr) return std::nullopt;
  return Cause{ClassifyExit(*first->exit), absl::StrCat("rank ", first - attempt.ranks.data(), " on ",
                                                        first->node.value(), " ", DescribeExit(*first->exit))};
}

}  // namespace llmctl::core
