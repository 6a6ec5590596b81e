#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "worker/agent/core/step.h"

namespace llmctl::agent {

// Words are made only where something is broken: the simulator looks after every step.
std::vector<std::string> FindViolations(const State& state) {
  std::vector<std::string> found;
  struct Use {
    int device;
    const GenerationId& generation;
    int rank;
  };
  absl::InlinedVector<Use, 8> uses;
  auto name = [](const GenerationId& id) { return absl::StrCat(id.job.value(), "/", id.attempt, "/", id.generation); };
  auto rank_name = [&](const GenerationId& id, int rank) { return absl::StrCat(name(id), " rank ", rank); };
  for (const auto& [id, gang] : state.gangs) {
    auto fence = state.fences.find(id.job);
    if (fence == state.fences.end() || fence->second < id.generation) {
      found.push_back(absl::StrCat(name(id), " has ranks but is not fenced"));
    }
    if (gang.confirmed_by_heartbeat.has_value() && !state.welcomed) {
      found.push_back(absl::StrCat(name(id), " awaits confirmation without a link"));
    }
    for (const auto& [number, rank] : gang.ranks) {
      if ((rank.phase == RankPhase::kExited) != rank.exit.has_value()) {
        found.push_back(absl::StrCat(rank_name(id, number), " has an exit record that does not fit its phase"));
      }
      if (rank.phase == RankPhase::kExited) continue;
      if (gang.confirmed_by_heartbeat.has_value()) {
        found.push_back(absl::StrCat(rank_name(id, number), " lives though its gang was reported as released"));
      }
      for (const Use& other : uses) {
        if (other.device != rank.device) continue;
        found.push_back(absl::StrCat("device ", rank.device, ": ", rank_name(other.generation, other.rank), " and ",
                                     rank_name(id, number)));
      }
      uses.push_back({rank.device, id, number});
    }
  }
  if (static_cast<int>(state.standbys.size()) > state.standbys_wanted) {
    found.push_back(absl::StrCat(state.standbys.size(), " standbys, wanted are ", state.standbys_wanted));
  }
  for (const auto& [key, commit] : state.outbox) {
    if (key.second != commit.request_id) found.push_back(absl::StrCat("outbox key of step ", commit.step));
  }
  return found;
}

}  // namespace llmctl::agent
