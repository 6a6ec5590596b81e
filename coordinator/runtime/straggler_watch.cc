#include "coordinator/runtime/straggler_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace llmctl::runtime {
namespace {

// Below it nobody would look for the reason; between the two lines a rank stays what it is.
constexpr double kStragglesFrom = 1.5;
constexpr double kRecoveredBelow = 1.2;
// Standard deviations of the others, and how many of their median absolute deviations one is in a normal distribution.
constexpr double kDeviations = 4;
constexpr double kDeviationPerMad = 1.4826;

double Median(std::vector<double> values) {
  size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + middle) + upper) / 2;
}

RankSpeed Compare(int rank, const std::map<int, double>& figures, bool straggled) {
  std::vector<double> others;
  for (const auto& [other, figure] : figures) {
    if (other != rank) others.push_back(figure);
  }
  double median = Median(others);
  for (double& other : others) other = std::abs(other - median);
  double scatter = kDeviationPerMad * Median(std::move(others));
  RankSpeed speed = {.seconds = figures.at(rank)};
  if (median <= 0) return speed;
  speed.slowness = speed.seconds / median;
  bool outside = speed.seconds > median + kDeviations * scatter;
  speed.straggler = straggled ? speed.slowness >= kRecoveredBelow : speed.slowness >= kStragglesFrom && outside;
  return speed;
}

}  // namespace

std::map<int, RankSpeed> CompareSpeeds(const std::map<int, double>& figures, const std::map<int, RankSpeed>& before) {
  std::map<int, RankSpeed> speeds;
  if (figures.size() < 2) return speeds;
  for (const auto& [rank, figure] : figures) {
    auto was = before.find(rank);
    speeds[rank] = Compare(rank, figures, was != before.end() && was->second.straggler);
  }
  return speeds;
}

void StragglerWatch::CloseWindow(const RankPulse& pulse, Instant now, Rank& rank) {
  int64_t steps = pulse.steps_here - rank.steps;
  if (rank.begun && (steps < kWindowSteps || now - rank.at < kWindowLeast)) return;
  if (rank.begun) {
    rank.moved = true;
    rank.windows.push_back((pulse.busy_seconds - rank.busy_seconds) / static_cast<double>(steps));
    if (rank.windows.size() > kWindows) rank.windows.pop_front();
  }
  // The first step's work is none to compare by.
  rank.begun = pulse.steps_here > 0;
  rank.busy_seconds = pulse.busy_seconds;
  rank.steps = pulse.steps_here;
  rank.at = now;
}

std::map<int, double> StragglerWatch::TakeFigures(Job& job) {
  std::map<int, double> figures;
  for (const auto& [number, rank] : job.ranks) {
    if (!rank.moved || rank.windows.size() < kWindows) return {};
    figures[number] = Median({rank.windows.begin(), rank.windows.end()});
  }
  for (auto& [number, rank] : job.ranks) rank.moved = false;
  return figures;
}

std::vector<StragglerWatch::Change> StragglerWatch::Observe(const std::vector<RankPulse>& pulses, Instant now) {
  std::vector<Change> changes;
  if (pulses.empty()) return changes;
  const GenerationId& generation = pulses.front().generation;
  Job& job = jobs_[generation.job];
  if (generation.generation < job.generation) return changes;
  if (generation.generation > job.generation) job = Job{.generation = generation.generation};
  for (const RankPulse& pulse : pulses) CloseWindow(pulse, now, job.ranks[pulse.rank]);
  std::map<int, double> figures = TakeFigures(job);
  if (figures.empty()) return changes;

  std::map<int, RankSpeed> speeds = CompareSpeeds(figures, job.speeds);
  for (auto& [number, speed] : speeds) {
    bool straggled = job.speeds[number].straggler;
    int& differs = job.ranks[number].differs;
    differs = speed.straggler != straggled ? differs + 1 : 0;
    if (differs < kInARow) {
      speed.straggler = straggled;
      continue;
    }
    differs = 0;
    changes.push_back({number, speed.straggler
                                   ? absl::StrFormat("rank %d is slow: a step takes it %.3f s of work, %.1f times the "
                                                     "median of the others", number, speed.seconds, speed.slowness)
                                   : absl::StrFormat("rank %d is no longer slow: %.1f times the median of the others",
                                                     number, speed.slowness)});
  }
  job.speeds = std::move(speeds);
  return changes;
}

const std::map<int, RankSpeed>& StragglerWatch::Speeds(const JobId& job) const {
  static const std::map<int, RankSpeed> kNone;
  auto it = jobs_.find(job);
  return it == jobs_.end() ? kNone : it->second.speeds;
}

}  // namespace llmctl::runtime
