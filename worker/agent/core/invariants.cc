#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "worker/agent/core/step.h"

namespace llmctl::agent {

std::vector<std::string> FindViolations(const State& state) {
  std::vector<std::string> found;
  std::map<int, std::string> users;  // of devices
  for (const auto& [id, gang] : state.gangs) {
    std::string name = absl::StrCat(id.job.value(), "/", id.attempt, "/", id.generation);
    auto fence = state.fences.find(id.job);
    if (fence == state.fences.end() || fence->second < id.generation) {
      found.push_back(absl::StrCat(name, " has ranks but is not fenced"));
    }
    if (gang.confirmed_by_heartbeat.has_value() && !state.welcomed) {
      found.push_back(absl::StrCat(name, " awaits confirmation without a link"));
    }
    for (const auto& [number, rank] : gang.ranks) {
      std::string rank_name = absl::StrCat(name, " rank ", number);
      if ((rank.phase == RankPhase::kExited) != rank.exit.has_value()) {
        found.push_back(absl::StrCat(rank_name, " has an exit record that does not fit its phase"));
      }
      if (rank.phase == RankPhase::kExited) continue;
      if (gang.confirmed_by_heartbeat.has_value()) {
        found.push_back(absl::StrCat(rank_name, " lives though its gang was reported as released"));
      }
      auto [user, free] = users.emplace(rank.device, rank_name);
      if (!free) found.push_back(absl::StrCat("device ", rank.device, ": ", user->second, " and ", rank_name));
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
