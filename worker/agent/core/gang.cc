#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "worker/agent/core/transitions.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::agent {
namespace {

// SIGTERM to SIGKILL where nobody said how long: long enough to flush files, short enough to wait for.
constexpr absl::Duration kDefaultGrace = absl::Seconds(10);

std::string Name(const GenerationId& id) {
  return absl::StrCat("generation ", id.generation, " (attempt ", id.attempt, ") of job ", id.job.value());
}

// Why the order cannot be carried out: failure class and words.
struct Refusal {
  std::string failure_class;
  std::string message;
};

std::optional<Refusal> FindStaleness(const State& state, const GenerationId& id) {
  auto fence = state.fences.find(id.job);
  auto gang = state.gangs.find(id);
  if (gang != state.gangs.end()) {
    if (!gang->second.kill.has_value() && !gang->second.yield.has_value()) return std::nullopt;
    return Refusal{"infrastructure", absl::StrCat("start ", Name(id), ": it is being stopped")};
  }
  if (fence == state.fences.end() || id.generation > fence->second) return std::nullopt;
  return Refusal{"infrastructure", absl::StrCat("start ", Name(id), ": generation ", fence->second,
                                                " was started or stopped here before; a start needs a newer one")};
}

std::optional<Refusal> FindImpediment(const State& state, const StartOrdered& order) {
  if (!order.refusal.empty()) return Refusal{"config", order.refusal};
  for (const RankOrder& wanted : order.ranks) {
    if (!state.devices.contains(wanted.device)) {
      return Refusal{"infrastructure", absl::StrCat("start rank ", wanted.rank, ": this host has no device ",
                                                    wanted.device, " (it has ", state.devices.size(), ")")};
    }
    for (const auto& [id, gang] : state.gangs) {
      for (const auto& [number, rank] : gang.ranks) {
        if (rank.device != wanted.device || rank.phase == RankPhase::kExited) continue;
        if (id == order.generation && number == wanted.rank) continue;
        return Refusal{"infrastructure", absl::StrCat("start rank ", wanted.rank, ": device ", wanted.device,
                                                      " is still used by rank ", number, " of ", Name(id))};
      }
    }
  }
  return std::nullopt;
}

void RefuseStart(State& state, const StartOrdered& order, const Refusal& refusal, Commands& out) {
  if (!state.welcomed) return;
  auto gang = state.gangs.find(order.generation);
  for (const RankOrder& rank : order.ranks) {
    // A rank that exists speaks for itself.
    if (gang != state.gangs.end() && gang->second.ranks.contains(rank.rank)) continue;
    ExitRecord exit = {
        .fatal_class = refusal.failure_class, .fatal_message = refusal.message, .start_failed = true};
    out.push_back(SendToCoordinator{RankUpdate{
        .generation = order.generation, .rank = rank.rank, .phase = RankPhase::kExited, .exit = std::move(exit)}});
  }
  if (gang == state.gangs.end()) out.push_back(SendToCoordinator{GangReleased{.generation = order.generation}});
}

void RaiseFence(State& state, const GenerationId& id, Commands& out) {
  int64_t& fence = state.fences[id.job];
  if (id.generation <= fence) return;
  fence = id.generation;
  out.push_back(PersistFences{id.job});
}

void KillOlderGangs(State& state, const GenerationId& newest, Commands& out) {
  for (auto& [id, gang] : state.gangs) {
    if (id.job != newest.job || id.generation >= newest.generation) continue;
    KillGang(gang, id, absl::ZeroDuration(), out);
  }
}

// In this order: the picture is of the rank as the failure left it; a rank that waits in a collective hears `stop`,
// which a signal alone would not get through to it.
void KillRank(const Gang& gang, const GenerationId& id, int rank, Commands& out) {
  if (!gang.failure.empty()) {
    out.push_back(SendToShim{.generation = id, .rank = rank, .message = contract::TakePicture{gang.failure}});
    out.push_back(SendToShim{.generation = id, .rank = rank, .message = contract::Stop{gang.failure}});
  }
  out.push_back(SendToShim{.generation = id, .rank = rank, .message = *gang.kill});
}

bool EndedBadly(const ExitRecord& exit) {
  if (exit.stopped_by_agent) return false;
  bool well = exit.exit_code == contract::kExitOk || exit.exit_code == contract::kExitYielded;
  return exit.start_failed || exit.signal != 0 || !well;
}

// Once, when the last rank has ended.
void WantEvidence(Gang& gang, const GenerationId& id, Commands& out) {
  bool bad = !gang.failure.empty();
  for (const auto& [number, rank] : gang.ranks) {
    if (rank.phase != RankPhase::kExited) return;
    bad = bad || EndedBadly(*rank.exit);
  }
  if (!bad || std::exchange(gang.evidence_wanted, true)) return;
  out.push_back(CollectEvidence{id});
}

}  // namespace

void RemoveWrittenProbe(State& state, const GenerationId& id, Commands& out) {
  auto it = state.written_probes.find(id);
  if (it == state.written_probes.end()) return;
  out.push_back(RemoveProbe{.checkpoint_directory = it->second.checkpoint_directory, .nonce = it->second.nonce});
  state.written_probes.erase(it);
}

Rank* FindRank(State& state, const GenerationId& id, int rank) {
  auto gang = state.gangs.find(id);
  if (gang == state.gangs.end()) return nullptr;
  auto it = gang->second.ranks.find(rank);
  return it == gang->second.ranks.end() ? nullptr : &it->second;
}

void StartGang(State& state, const StartOrdered& order, Commands& out) {
  RemoveWrittenProbe(state, order.generation, out);
  if (std::optional<Refusal> stale = FindStaleness(state, order.generation)) {
    return RefuseStart(state, order, *stale, out);
  }
  RaiseFence(state, order.generation, out);
  KillOlderGangs(state, order.generation, out);
  if (std::optional<Refusal> impediment = FindImpediment(state, order)) {
    return RefuseStart(state, order, *impediment, out);
  }
  if (state.preflight.has_value()) out.push_back(CancelPreflight{});
  Gang& gang = state.gangs[order.generation];
  gang.orphan_timeout = order.start.orphan_timeout;
  for (const RankOrder& wanted : order.ranks) {
    auto [it, added] = gang.ranks.try_emplace(wanted.rank, Rank{.device = wanted.device});
    if (!added) continue;
    out.push_back(SpawnShim{.generation = order.generation,
                            .rank = wanted.rank,
                            .standby = TakeStandby(state, order.start),
                            .assignment = {.generation = order.generation,
                                           .rank = wanted.rank,
                                           .world_size = order.world_size,
                                           .device = wanted.device,
                                           .rank_table = order.rank_table},
                            .start = order.start});
  }
  TellGang(state, order.generation, out);
  KeepStandbys(state, out);
}

void StopGang(State& state, const StopOrdered& order, Commands& out) {
  RemoveWrittenProbe(state, order.generation, out);
  // Even if nothing of it is here: its start may still be under way to us.
  RaiseFence(state, order.generation, out);
  auto it = state.gangs.find(order.generation);
  if (it == state.gangs.end()) {
    if (state.welcomed) out.push_back(SendToCoordinator{GangReleased{.generation = order.generation}});
    return;
  }
  Gang& gang = it->second;
  if (order.failed) gang.failure = order.reason.empty() ? "the gang has failed" : order.reason;
  if (!order.checkpoint_first || gang.kill.has_value()) {
    KillGang(gang, order.generation, order.grace, out);
  } else if (!gang.yield.has_value()) {
    gang.yield = contract::Yield{.reason = order.reason, .deadline_seconds = absl::ToDoubleSeconds(order.grace)};
    for (const auto& [number, rank] : gang.ranks) {
      if (!rank.shim_connected || rank.phase == RankPhase::kExited) continue;
      out.push_back(SendToShim{.generation = order.generation, .rank = number, .message = *gang.yield});
    }
    Arm(state, {.purpose = Timer::Purpose::kYieldDeadline, .generation = order.generation}, order.grace, out);
  }
  // If all have exited already, the coordinator asks because it does not know.
  gang.confirmed_by_heartbeat.reset();
  TellGang(state, order.generation, out);
}

void KillGang(Gang& gang, const GenerationId& id, absl::Duration grace, Commands& out) {
  gang.kill = contract::Kill{.grace_seconds = absl::ToDoubleSeconds(grace)};
  for (const auto& [number, rank] : gang.ranks) {
    if (rank.shim_connected && rank.phase != RankPhase::kExited) KillRank(gang, id, number, out);
  }
}

void StopOrphans(State& state, const GenerationId& id, Commands& out) {
  auto it = state.gangs.find(id);
  if (it == state.gangs.end() || it->second.kill.has_value()) return;
  it->second.orphan_reason = absl::StrCat("no way to the coordinator for the job's orphan timeout of ",
                                        absl::FormatDuration(it->second.orphan_timeout));
  KillGang(it->second, id, kDefaultGrace, out);
}

void EndYield(State& state, const GenerationId& id, Commands& out) {
  auto it = state.gangs.find(id);
  if (it == state.gangs.end() || it->second.kill.has_value()) return;
  KillGang(it->second, id, kDefaultGrace, out);
}

void AskForCheckpoint(State& state, const CheckpointOrdered& order, Commands& out) {
  auto it = state.gangs.find(order.generation);
  if (it == state.gangs.end()) return;
  for (const auto& [number, rank] : it->second.ranks) {
    if (!rank.shim_connected || rank.phase != RankPhase::kRunning) continue;
    out.push_back(
        SendToShim{.generation = order.generation, .rank = number, .message = contract::CheckpointRequest{}});
  }
}

void AdoptShim(State& state, const ShimFound& event) {
  Gang& gang = state.gangs[event.generation];
  gang.orphan_timeout = event.orphan_timeout;
  gang.ranks[event.rank] = Rank{.device = event.device, .catching_up = true};
  // The record of fences is written first, yet it may have been lost with its disk: what runs was started.
  int64_t& fence = state.fences[event.generation.job];
  fence = std::max(fence, event.generation.generation);
}

void GreetShim(State& state, const ShimConnected& event, Commands& out) {
  Rank* rank = FindRank(state, event.generation, event.rank);
  if (rank == nullptr) return;
  rank->shim_connected = true;
  if (rank->phase == RankPhase::kExited) return;
  const Gang& gang = state.gangs.at(event.generation);
  if (gang.kill.has_value()) {
    KillRank(gang, event.generation, event.rank, out);
  } else if (gang.yield.has_value()) {
    out.push_back(SendToShim{.generation = event.generation, .rank = event.rank, .message = *gang.yield});
  }
}

void LoseShimLink(State& state, const ShimDisconnected& event) {
  if (Rank* rank = FindRank(state, event.generation, event.rank)) rank->shim_connected = false;
}

void EndRank(State& state, const RankExited& event, Commands& out) {
  Rank* rank = FindRank(state, event.generation, event.rank);
  if (rank == nullptr) return;
  // A shim repeats its exit record whenever an agent connects.
  if (rank->phase != RankPhase::kExited) {
    rank->phase = RankPhase::kExited;
    rank->exit = event.exit;
    const std::string& reason = state.gangs.at(event.generation).orphan_reason;
    if (!reason.empty() && rank->exit->stopped_by_agent && rank->exit->fatal_class.empty()) {
      rank->exit->fatal_class = "orphaned";
      rank->exit->fatal_message = reason;
    }
    rank->unanswered.clear();
  }
  rank->catching_up = false;
  DialWhenCaughtUp(state, out);
  TellGang(state, event.generation, out);
  WantEvidence(state.gangs.at(event.generation), event.generation, out);
}

}  // namespace llmctl::agent
