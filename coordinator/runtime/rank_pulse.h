// What a host says of one rank with every heartbeat, seen from outside. Seconds are of the host's own clock, so that a
// stall of the coordinator or of the link makes nothing look older than it is.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"

namespace llmctl::runtime {

struct RankPulse {
  GenerationId generation;
  int rank = 0;
  std::string activity;  // "starting", "training", "validation", "checkpoint", "ending"
  std::string phase;     // "data", "forward", "backward", "collective", ...
  std::string where;     // the phase for a person: "in the data loader"
  double activity_seconds = 0;
  double phase_seconds = 0;
  int64_t step = 0;        // done so far
  int64_t steps_here = 0;  // done by this process
  double step_seconds = 0;  // since the newest was done
  double busy_seconds = 0;  // spent by this process without waiting for others
  double longest_validation_seconds = 0;
  double longest_checkpoint_seconds = 0;
};

}  // namespace llmctl::runtime
