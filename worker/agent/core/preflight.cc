// The test of the host that the coordinator asks for. Ranks come first: none is begun beside them, and a start cancels
// the one that runs.
#include <algorithm>
#include <utility>

#include "worker/agent/core/transitions.h"

namespace llmctl::agent {
namespace {

bool HasRanks(const State& state) {
  for (const auto& [id, gang] : state.gangs) {
    for (const auto& [number, rank] : gang.ranks) {
      if (rank.phase != RankPhase::kExited) return true;
    }
  }
  return false;
}

}  // namespace

void BeginPreflight(State& state, const PreflightOrdered& order, Commands& out) {
  if (HasRanks(state)) {
    if (!state.welcomed) return;
    out.push_back(SendToCoordinator{PreflightResult{.number = order.number, .interrupted = true, .found = {}}});
    return;
  }
  // One that runs already answers a new order too, but not an old one that has come twice.
  if (!state.preflight.has_value()) out.push_back(RunPreflight{});
  state.preflight = std::max(state.preflight.value_or(kPreflightOfNobody), order.number);
}

void EndPreflight(State& state, const PreflightFinished& event, Commands& out) {
  if (!state.preflight.has_value()) return;
  int64_t number = *std::exchange(state.preflight, std::nullopt);
  // Without a link it is lost; the coordinator orders another when the host is back.
  if (!state.welcomed || number == kPreflightOfNobody) return;
  out.push_back(SendToCoordinator{
      PreflightResult{.number = number, .interrupted = event.interrupted, .found = event.found}});
}

}  // namespace llmctl::agent
