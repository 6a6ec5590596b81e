#include "coordinator/core/invariants.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "coordinator/core/gang.h"
#include "coordinator/core/step.h"

namespace llmctl::core {
namespace {

bool HasTimer(const State& state, const JobId& job) {
  return std::any_of(state.timers.begin(), state.timers.end(), [&](const auto& t) { return t.second.job == job; });
}

std::string BrokenCounters(const Job& job) {
  if (!job.attempt.has_value()) {
    return job.last_attempt == 0 && job.last_generation == 0 ? "" : "its counters moved without an attempt";
  }
  if (job.attempt->number != job.last_attempt) return "its attempt is not the newest";
  if (job.attempt->generation != job.last_generation) return "its generation is not the newest";
  return "";
}

std::string BrokenCheckpoints(const Job& job) {
  size_t kept_most = std::max(1, job.requirements.keep_last);
  if (job.checkpoints.size() > kept_most) return "it keeps too many checkpoints";
  for (size_t i = 0; i < job.checkpoints.size(); ++i) {
    const CheckpointRecord& c = job.checkpoints[i];
    if (c.generation > job.last_generation) return "it has a checkpoint of a generation that never was";
    if (i == 0) continue;
    const CheckpointRecord& before = job.checkpoints[i - 1];
    if (std::pair(c.step, c.generation) <= std::pair(before.step, before.generation)) return "its checkpoints go back";
    if (c.next_sample < before.next_sample) return "its samples go back";
  }
  return "";
}

std::string BrokenGang(const State& state, const Job& job) {
  const Attempt& attempt = *job.attempt;
  const JobRequirements& r = job.requirements;
  int world = static_cast<int>(attempt.ranks.size());
  int workers = world / r.devices_per_worker;
  int workers_most = std::max(r.workers_min, r.workers_max);
  if (world % r.devices_per_worker != 0 || workers < r.workers_min || workers > workers_most) {
    return "its gang is not whole";
  }
  const GenerationId generation = CurrentGeneration(job);
  for (auto rank_at = attempt.ranks.begin(); rank_at != attempt.ranks.end(); ++rank_at) {
    const RankState& rank = *rank_at;
    auto shares = [&](const RankState& other) { return other.device == rank.device && other.node == rank.node; };
    if (std::any_of(attempt.ranks.begin(), rank_at, shares)) return "two of its ranks share a device";
    if ((rank.phase == RankPhase::kExited) != rank.exit.has_value()) return "a rank's exit and phase disagree";
    if (!attempt.ranks_requested && rank.phase != RankPhase::kAssigned) return "a rank runs that was never requested";
    if (attempt.ranks_requested && !MayHaveProcesses(attempt, rank.node)) continue;
    auto owner = state.device_owner.find({rank.node, rank.device});
    if (owner == state.device_owner.end() || owner->second != generation) {
      return absl::StrCat("it does not own device ", rank.device, " of ", rank.node.value());
    }
  }
  return "";
}

std::string BrokenPhase(const State& state, const Job& job) {
  bool wants_timer =
      job.phase == JobPhase::kBackoff || job.phase == JobPhase::kStarting || job.phase == JobPhase::kStopping;
  if (wants_timer && !HasTimer(state, job.id)) return "nothing will ever end its phase";
  if (HasLiveGang(job.phase) && !job.attempt.has_value()) return "it has no gang";
  if (IsTerminal(job.phase) != (job.end_time != absl::InfinitePast())) return "its end time and phase disagree";
  if (IsTerminal(job.phase) && job.reason.empty()) return "it ended without a cause";
  if (job.cancel_requested && job.phase != JobPhase::kStopping && job.phase != JobPhase::kCancelled) {
    return "a cancel did not win";
  }
  if (job.suspend_requested && job.phase != JobPhase::kStopping) return "a suspend was forgotten";
  bool has_class = job.failure.failure_class != FailureClass::kNone;
  if (job.phase == JobPhase::kFailed && !has_class) return "it failed without a class";
  return "";
}

std::string BrokenBudget(const Job& job) {
  if (job.user_restarts > job.requirements.max_restarts) return "it was restarted beyond maxRestarts";
  if (!IsTerminal(job.phase) && job.infrastructure_failures >= job.requirements.max_attempts_without_progress) {
    return "it goes on beyond maxAttemptsWithoutProgress";
  }
  return "";
}

void FindDeviceViolations(const State& state, std::vector<std::string>& out) {
  struct Use {
    const RankState& rank;
    const JobId& job;
  };
  // A handful, looked through after every step of a simulation: cheaper than a map.
  absl::InlinedVector<Use, 16> uses;
  for (const auto& [id, job] : state.jobs) {
    if (!HasLiveGang(job.phase)) continue;
    for (const RankState& rank : job.attempt->ranks) {
      if (job.attempt->ranks_requested && !MayHaveProcesses(*job.attempt, rank.node)) continue;
      for (const Use& other : uses) {
        if (other.rank.device != rank.device || other.rank.node != rank.node) continue;
        out.push_back(absl::StrCat("device ", rank.device, " of ", rank.node.value(), " is given to ", id.value(),
                                   " and ", other.job.value()));
      }
      uses.push_back({rank, id});
    }
  }
  for (const NodeId& node : state.connected) {
    auto found = state.nodes.find(node);
    if (found == state.nodes.end() || found->second.state != NodeState::kReady) {
      out.push_back(absl::StrCat("node ", node.value(), " is connected and lost"));
    }
  }
}

// KeyOf(job), compared without making it.
bool IsKeyOf(absl::string_view key, const Job& job) {
  return absl::ConsumePrefix(&key, job.project) && absl::ConsumePrefix(&key, "/") && key == job.idempotency_key;
}

// A set of ids, walked through beside the jobs: both are in the order of their ids.
class Walk {
 public:
  explicit Walk(const std::set<JobId>& ids) : at_(ids.begin()), end_(ids.end()) {}

  // Whether the set has `id` next exactly if it should.
  bool Agrees(const JobId& id, bool member) {
    bool there = at_ != end_ && *at_ == id;
    if (there) ++at_;
    return there == member;
  }
  bool AtEnd() const { return at_ == end_; }

 private:
  std::set<JobId>::const_iterator at_;
  const std::set<JobId>::const_iterator end_;
};

bool IsIndexOf(const JobIndex& index, const State& state) {
  Walk with_gang(index.with_gang), queued(index.queued), newcomers(index.newcomers);
  for (const auto& [id, job] : state.jobs) {
    bool waits = job.phase == JobPhase::kQueued;
    if (!with_gang.Agrees(id, HasLiveGang(job.phase)) || !queued.Agrees(id, waits)) return false;
    if (!newcomers.Agrees(id, waits && !state.waiting_reason.contains(id))) return false;
  }
  return with_gang.AtEnd() && queued.AtEnd() && newcomers.AtEnd();
}

// What the counter of jobs gave it; of an id that it did not make, more than any counter.
int64_t NumberOf(const JobId& id) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  absl::string_view digits = id.value();
  if (!absl::ConsumePrefix(&digits, "j-")) return kNone;
  int64_t number = 0;
  auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  return error == std::errc() && end == digits.end() ? number : kNone;
}

void FindIndexViolations(const State& state, std::vector<std::string>& out) {
  size_t keyed = 0;
  for (const auto& [id, job] : state.jobs) {
    if (NumberOf(id) >= state.counters.next_job) {
      out.push_back(absl::StrCat("job ", id.value(), " is beyond the counter ", state.counters.next_job));
    }
    keyed += !job.idempotency_key.empty();
  }
  // Different keys lead to different jobs, so as many keys as keyed jobs are all of them.
  for (const auto& [key, id] : state.jobs_by_key) {
    auto found = state.jobs.find(id);
    if (found == state.jobs.end() || !IsKeyOf(key, found->second)) {
      out.push_back(absl::StrCat("the key ", key, " leads to ", id.value(), ", which does not have it"));
    }
  }
  if (keyed != state.jobs_by_key.size()) out.push_back("a job is not found by its key");
  if (!IsIndexOf(state.index, state)) out.push_back("the index of jobs is not what their phases say");
  if (state.index.newcomers.size() + state.waiting_reason.size() != state.index.queued.size()) {
    out.push_back("a job that is not queued has a reason to wait");
  }
  for (const auto& [id, timer] : state.timers) {
    if (!timer.job.empty() && !state.jobs.contains(timer.job)) out.push_back("a timer is armed for no job");
  }
}

}  // namespace

std::string FindJobViolation(const State& state, const Job& job) {
  std::string broken = BrokenCounters(job);
  if (broken.empty()) broken = BrokenPhase(state, job);
  if (broken.empty()) broken = BrokenCheckpoints(job);
  if (broken.empty()) broken = BrokenBudget(job);
  if (broken.empty() && HasLiveGang(job.phase)) broken = BrokenGang(state, job);
  if (broken.empty()) return "";
  return absl::StrCat("job ", job.id.value(), " (", JobPhaseName(job.phase), "): ", broken);
}

std::vector<std::string> FindViolations(const State& state) {
  std::vector<std::string> out;
  for (const auto& [id, job] : state.jobs) {
    std::string broken = FindJobViolation(state, job);
    if (!broken.empty()) out.push_back(std::move(broken));
  }
  FindDeviceViolations(state, out);
  FindIndexViolations(state, out);
  return out;
}

}  // namespace llmctl::core
