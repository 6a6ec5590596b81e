#include "worker/engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace llmctl::engine {

double LearningRate(const contract::ScheduleConfig& schedule, double peak, int64_t steps, int64_t step) {
  double done = static_cast<double>(step + 1);
  double warmup = static_cast<double>(schedule.warmup_steps);
  if (done < warmup) return peak * done / warmup;
  if (schedule.type == "constant") return peak;
  double decay_steps = static_cast<double>(steps) - warmup;
  double progress = decay_steps > 0 ? std::clamp((done - warmup) / decay_steps, 0.0, 1.0) : 1.0;
  double height = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return peak * (schedule.min_learning_rate_factor + (1.0 - schedule.min_learning_rate_factor) * height);
}

}  // namespace llmctl::engine
