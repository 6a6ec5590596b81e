#include "common/base/instant.h"

#include <time.h>

#include "absl/time/clock.h"

namespace llmctl {

Instant Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return {absl::DurationFromTimespec(t), absl::Now()};
}

}  // namespace llmctl
