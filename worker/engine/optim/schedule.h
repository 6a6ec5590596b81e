// Learning rate as a pure function of the step: nothing to save, nothing to restore.
//
// The rate rises linearly to its peak over the warm-up steps, then falls along half a cosine to a fraction
// of the peak, which the last step has exactly ("cosine"), or stays at the peak ("constant").
#pragma once

#include <cstdint>

#include "worker/contract/trainer_config.h"

namespace llmctl::engine {

// Of step number `step` (0 is the first) out of `steps`.
double LearningRate(const contract::ScheduleConfig& schedule, double peak, int64_t steps, int64_t step);

}  // namespace llmctl::engine
