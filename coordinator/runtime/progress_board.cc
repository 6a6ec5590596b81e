#include "coordinator/runtime/progress_board.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace llmctl::runtime {
namespace {

constexpr size_t kStepTimesMax = 32;
constexpr absl::Duration kBetweenNews = absl::Milliseconds(500);

}  // namespace

bool ProgressBoard::Report(const GenerationId& generation, const Progress& progress, Instant now) {
  MutexLock lock(mutex_);
  Entry& entry = entries_[generation.job];
  if (generation.generation < entry.generation) return false;
  if (generation.generation > entry.generation) {
    entry.generation = generation.generation;
    entry.step_seconds.clear();
  }
  double validation_loss = entry.newest.validation_loss;
  int64_t validation_step = entry.newest.validation_step;
  entry.newest = progress;
  if (std::isnan(progress.validation_loss)) {
    entry.newest.validation_loss = validation_loss;
    entry.newest.validation_step = validation_step;
  }
  if (progress.step_seconds > 0) {
    entry.step_seconds.push_back(progress.step_seconds);
    if (entry.step_seconds.size() > kStepTimesMax) entry.step_seconds.pop_front();
  }
  if (!entry.step_seconds.empty()) {
    double mean = std::accumulate(entry.step_seconds.begin(), entry.step_seconds.end(), 0.0) /
                  static_cast<double>(entry.step_seconds.size());
    entry.newest.eta_seconds = mean * static_cast<double>(std::max<int64_t>(0, progress.steps - progress.step));
  }
  if (now.monotonic - entry.told < kBetweenNews) return false;
  entry.told = now.monotonic;
  return true;
}

std::optional<Progress> ProgressBoard::Newest(const JobId& job) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(job);
  if (it == entries_.end()) return std::nullopt;
  return it->second.newest;
}

void ProgressBoard::Forget(const JobId& job) {
  MutexLock lock(mutex_);
  entries_.erase(job);
}

}  // namespace llmctl::runtime
