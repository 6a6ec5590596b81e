// Trainers that wait for a job: how many, when they are started, and which start takes one.
//
// They are a convenience: they are started one at a time and not while a rank starts or has just started, so that no
// job waits for one that is being replaced. One that keeps ending is tried again ever less often.
#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "worker/agent/core/transitions.h"

namespace llmctl::agent {
namespace {

// A gang that goes on after a failure repeats steps: it needs the host more than the next failure does.
constexpr absl::Duration kAfterStart = absl::Seconds(3);
constexpr absl::Duration kBackoffFirst = absl::Seconds(1);
constexpr absl::Duration kBackoffMost = absl::Minutes(1);

// What libraries read when they are loaded or first used, which a standby has behind it. A job that sets one of these
// gets a fresh process; what a trainer reads later is given to a standby before it goes on.
constexpr std::array<absl::string_view, 20> kReadOnce = {
    "LD_",  "GLIBC_", "MALLOC_", "LC_",   "LANG", "TZ",   "OMP_",  "GOMP_", "KMP_",  "MKL_",
    "DNNL_", "ONEDNN_", "ATEN_", "TORCH", "PYTORCH", "C10", "THP_", "CUDA", "NCCL_", "GLOO_"};

bool NeedsFreshProcess(const JobStart& start) {
  return std::any_of(start.env.begin(), start.env.end(), [](const auto& entry) {
    return std::any_of(kReadOnce.begin(), kReadOnce.end(),
                       [&](absl::string_view prefix) { return absl::StartsWith(entry.first, prefix); });
  });
}

bool HasRank(const State& state, bool starting_only) {
  for (const auto& [id, gang] : state.gangs) {
    for (const auto& [number, rank] : gang.ranks) {
      if (rank.phase == RankPhase::kStarting) return true;
      if (rank.phase == RankPhase::kRunning && !starting_only) return true;
    }
  }
  return false;
}

absl::Duration DelayOfNext(const State& state) {
  if (state.standby_failures > 0) {
    // The shift is bounded before it can overflow: 1 s << 6 is beyond the bound.
    return std::min(kBackoffFirst * (int64_t{1} << std::min(state.standby_failures - 1, 6)), kBackoffMost);
  }
  return HasRank(state, /*starting_only=*/false) ? kAfterStart : absl::ZeroDuration();
}

}  // namespace

void KeepStandbys(State& state, Commands& out) {
  if (state.standby_due || static_cast<int>(state.standbys.size()) >= state.standbys_wanted) return;
  bool one_under_way = std::any_of(state.standbys.begin(), state.standbys.end(), [](const auto& entry) {
    return entry.second.phase != Standby::Phase::kReady;
  });
  if (one_under_way) return;
  state.standby_due = true;
  Arm(state, {.purpose = Timer::Purpose::kStandby}, DelayOfNext(state), out);
}

void StartDueStandby(State& state, Commands& out) {
  state.standby_due = false;
  if (HasRank(state, /*starting_only=*/true)) return KeepStandbys(state, out);
  if (static_cast<int>(state.standbys.size()) >= state.standbys_wanted) return;
  int64_t number = state.next_standby++;
  state.standbys[number] = Standby{};
  out.push_back(StartStandby{number});
}

void AdmitStandby(State& state, const StandbyConnected& event, Commands& out) {
  auto known = state.standbys.find(event.number);
  if (known == state.standbys.end() && static_cast<int>(state.standbys.size()) >= state.standbys_wanted) {
    out.push_back(EndStandby{event.number});
    return;
  }
  state.next_standby = std::max(state.next_standby, event.number + 1);
  state.standbys[event.number].phase = Standby::Phase::kLoading;
}

void MarkStandbyReady(State& state, const StandbyReady& event, Commands& out) {
  auto standby = state.standbys.find(event.number);
  if (standby == state.standbys.end()) return;
  standby->second = {.phase = Standby::Phase::kReady, .memory_bytes = event.memory_bytes};
  state.standby_failures = 0;
  KeepStandbys(state, out);
}

void LoseStandby(State& state, const StandbyEnded& event, Commands& out) {
  if (state.standbys.erase(event.number) == 0) return;
  ++state.standby_failures;
  KeepStandbys(state, out);
}

int64_t TakeStandby(State& state, const JobStart& start) {
  if (NeedsFreshProcess(start)) return 0;
  auto best = state.standbys.end();
  for (auto it = state.standbys.begin(); it != state.standbys.end(); ++it) {
    if (it->second.phase == Standby::Phase::kStarting) continue;
    if (best == state.standbys.end() || it->second.phase > best->second.phase) best = it;
  }
  if (best == state.standbys.end()) return 0;
  int64_t number = best->first;
  state.standbys.erase(best);
  return number;
}

Heartbeat DescribeStandbys(const State& state) {
  Heartbeat heartbeat;
  for (const auto& [number, standby] : state.standbys) {
    heartbeat.standbys_ready += standby.phase == Standby::Phase::kReady;
    heartbeat.standby_memory_bytes += standby.memory_bytes;
  }
  return heartbeat;
}

}  // namespace llmctl::agent
