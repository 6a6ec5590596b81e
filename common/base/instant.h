// A moment as the cores see it: monotonic time to decide by, wall time to show to people.
//
// Every deadline and duration is computed from `monotonic`, which never jumps; `wall` is only displayed and stored
// for display (but for the decay of a node's strikes, docs/decisions/0007). Deadlines are not persisted (monotonic
// time means nothing after a reboot); durations are.
#pragma once

#include "absl/time/time.h"

namespace llmctl {

struct Instant {
  absl::Duration monotonic;  // since an arbitrary origin of this boot
  absl::Time wall;

  Instant operator+(absl::Duration d) const { return {monotonic + d, wall + d}; }
  bool operator<(const Instant& other) const { return monotonic < other.monotonic; }
  bool operator<=(const Instant& other) const { return monotonic <= other.monotonic; }
  absl::Duration operator-(const Instant& other) const { return monotonic - other.monotonic; }
};

// CLOCK_MONOTONIC and the system clock. Only shells (runtime, agent, trainer, client) call this; cores get
// their Instant as an argument.
Instant Now();

}  // namespace llmctl
