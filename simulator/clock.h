// A machine's clock: its monotonic time runs a little fast or slow, and its wall clock may jump besides.
//
// Of all decisions only how long a strike counts goes by wall time; that a run comes out the same otherwise, whatever
// the wall clocks do, is a test.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

#include "common/base/instant.h"

namespace llmctl::simulator {

class Clock {
 public:
  Clock() = default;
  // `rate`: seconds that it counts in one true second.
  explicit Clock(double rate) : gain_(rate - 1.0), loss_(1.0 / rate - 1.0) {}

  Instant At(absl::Duration true_time) const {
    absl::Duration mine = Stretch(true_time, gain_);
    return {mine, wall_at_zero_ + mine};
  }
  // How long it truly takes until `mine` has passed here.
  absl::Duration TrueLength(absl::Duration mine) const { return Stretch(mine, loss_); }
  void Jump(absl::Duration by) { wall_at_zero_ += by; }

 private:
  // In whole nanoseconds, as clocks count.
  static absl::Duration Stretch(absl::Duration length, double by) {
    if (by == 0.0) return length;
    int64_t count = absl::ToInt64Nanoseconds(length);
    return absl::Nanoseconds(count + static_cast<int64_t>(static_cast<double>(count) * by));
  }

  double gain_ = 0.0;  // of this clock in a true second
  double loss_ = 0.0;  // of true time in a second of this clock
  absl::Time wall_at_zero_ = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace llmctl::simulator
