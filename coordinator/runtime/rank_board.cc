#include "coordinator/runtime/rank_board.h"

#include <algorithm>

namespace llmctl::runtime {
namespace {

constexpr absl::Duration kLiveLeast = absl::Seconds(10);

}  // namespace

RankBoard::RankBoard(absl::Duration heartbeats) : live_(std::max(kLiveLeast, 3 * heartbeats)), hangs_(heartbeats) {}

RankBoard::Findings RankBoard::Report(const std::vector<RankPulse>& pulses, const HangWatch::JobFacts& facts,
                                      Instant now) {
  if (pulses.empty()) return {};
  MutexLock lock(mutex_);
  for (const RankPulse& pulse : pulses) heard_[pulse.generation.job][pulse.rank] = {pulse, now};
  return {hangs_.Observe(pulses, facts, now), stragglers_.Observe(pulses, now)};
}

void RankBoard::AddStep(const GenerationId& generation, double seconds) {
  MutexLock lock(mutex_);
  hangs_.AddStep(generation, seconds);
}

void RankBoard::DismissSuspicion(const GenerationId& generation, Instant now) {
  MutexLock lock(mutex_);
  hangs_.Dismiss(generation, now);
}

std::map<int, LiveRank> RankBoard::Live(const GenerationId& generation, Instant now) const {
  std::map<int, LiveRank> live;
  MutexLock lock(mutex_);
  auto heard = heard_.find(generation.job);
  if (heard == heard_.end()) return live;
  const std::map<int, RankSpeed>& speeds = stragglers_.Speeds(generation.job);
  for (const auto& [rank, last] : heard->second) {
    if (last.pulse.generation != generation || now - last.at > live_) continue;
    auto speed = speeds.find(rank);
    live[rank] = {last.pulse.where, speed == speeds.end() ? RankSpeed() : speed->second};
  }
  return live;
}

double RankBoard::Skew(const JobId& job) const {
  MutexLock lock(mutex_);
  double skew = 0;
  for (const auto& [rank, speed] : stragglers_.Speeds(job)) skew = std::max(skew, speed.slowness);
  return skew;
}

void RankBoard::Forget(const JobId& job) {
  MutexLock lock(mutex_);
  hangs_.Forget(job);
  stragglers_.Forget(job);
  heard_.erase(job);
}

}  // namespace llmctl::runtime
