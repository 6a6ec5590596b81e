// Standbys, and the pre-flights that the coordinator orders.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "simulator/host.h"

namespace llmctl::simulator {
namespace {

constexpr int64_t kStandbyBytes = 1 << 20;
constexpr absl::Duration kShimStart = absl::Milliseconds(10);
constexpr absl::Duration kLoading = absl::Milliseconds(500);

}  // namespace

// The ones of an earlier life of the agent; one that ended meanwhile left nothing.
void Host::FindStandbys(int64_t life) {
  std::erase_if(standbys_, [](const auto& entry) { return !entry.second.alive; });
  std::vector<int64_t> numbers;
  for (const auto& [number, standby] : standbys_) numbers.push_back(number);
  for (int64_t number : numbers) {
    sim_.Reached(Probe::kStandbyAdopted);
    Do(life, agent::StandbyConnected{number});
    LoadStandby(life, number);
  }
}

void Host::StartStandby(int64_t life, int64_t number) {
  standbys_[number] = Standby{};
  Later(life, kShimStart, [this, life, number] {
    auto found = standbys_.find(number);
    if (found == standbys_.end() || !found->second.alive) return;
    Do(life, agent::StandbyConnected{number});
    LoadStandby(life, number);
  });
}

void Host::LoadStandby(int64_t life, int64_t number) {
  Later(life, kLoading, [this, life, number] {
    auto found = standbys_.find(number);
    if (found == standbys_.end() || !found->second.alive) return;
    Do(life, agent::StandbyReady{number, kStandbyBytes});
  });
}

void Host::TakeStandby(int64_t number) {
  auto found = standbys_.find(number);
  if (found == standbys_.end()) {
    sim_.Violation(absl::StrCat("standby ", number, " of ", node_.value(), " was taken and is not there"));
    return;
  }
  // What has just ended is as good as none: the rank gets a process of its own.
  sim_.Reached(found->second.alive ? Probe::kStartOnStandby : Probe::kStandbyEndedUnseen);
  standbys_.erase(found);
}

void Host::KillStandby() {
  for (auto& [number, standby] : standbys_) {
    if (!standby.alive) continue;
    sim_.Reached(Probe::kStandbyKilled);
    standby.alive = false;
    for (const auto& [life, agent] : agents_) {
      Later(life, sim_.dice().Between(absl::Milliseconds(1), absl::Milliseconds(200)),
            [this, life = life, number = number] {
              auto found = standbys_.find(number);
              if (found == standbys_.end() || found->second.alive) return;
              standbys_.erase(found);
              Do(life, agent::StandbyEnded{number, "killed"});
            });
    }
    return;
  }
}

void Host::RunPreflight(Agent& agent) {
  int64_t number = ++agent.preflight;
  Later(agent.life, sim_.dice().Between(absl::Seconds(1), absl::Seconds(20)), [this, life = agent.life, number] {
    if (Find(life)->preflight != number) return;
    bool unfit = std::exchange(unfit_, false);
    sim_.Reached(unfit ? Probe::kPreflightFailed : Probe::kPreflightPassed);
    Do(life, agent::PreflightFinished{false, {.passed = !unfit, .failure = unfit ? "it computes wrongly" : ""}});
  });
}

void Host::CancelPreflight(Agent& agent) {
  sim_.Reached(Probe::kPreflightCutShort);
  ++agent.preflight;
  Later(agent.life, absl::Milliseconds(2), [this, life = agent.life] {
    Do(life, agent::PreflightFinished{true, {.passed = false}});
  });
}

}  // namespace llmctl::simulator
