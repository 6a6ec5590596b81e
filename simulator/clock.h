// A machine's clock: its monotonic time runs a little fast or slow, and its wall clock may jump besides.
//
// Nothing may be decided by wall time; that a run comes out the same whatever the wall clocks do is a test.
#pragma once

#include "absl/time/time.h"

#include "common/base/instant.h"

namespace llmctl::simulator {

class Clock {
 public:
  Clock() = default;
  // `rate`: seconds that it counts in one true second.
  explicit Clock(double rate) : rate_(rate) {}

  Instant At(absl::Duration true_time) const {
    // Whole nanoseconds, as clocks count.
    absl::Duration mine = rate_ == 1.0 ? true_time : absl::Trunc(true_time * rate_, absl::Nanoseconds(1));
    return {mine, absl::FromUnixSeconds(1'700'000'000) + mine + jumped_};
  }
  // How long it truly takes until `mine` has passed here.
  absl::Duration TrueLength(absl::Duration mine) const { return rate_ == 1.0 ? mine : mine / rate_; }
  void Jump(absl::Duration by) { jumped_ += by; }

 private:
  double rate_ = 1.0;
  absl::Duration jumped_ = absl::ZeroDuration();
};

}  // namespace llmctl::simulator
