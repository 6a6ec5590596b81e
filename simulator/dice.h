// A source of chance that can be replayed: the same seed throws the same.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

#include "common/base/rng.h"

namespace llmctl::simulator {

class Dice {
 public:
  explicit Dice(uint64_t seed) : rng_(seed) {}

  bool Happens(double probability) { return rng_.Uniform() < probability; }
  // 0 .. count - 1.
  int Pick(int count) { return static_cast<int>(rng_.Below(static_cast<uint64_t>(count))); }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    int64_t from = absl::ToInt64Nanoseconds(low);
    double span = static_cast<double>(absl::ToInt64Nanoseconds(high) - from);
    return absl::Nanoseconds(from + static_cast<int64_t>(rng_.Uniform() * span));
  }
  double Between(double low, double high) { return low + (high - low) * rng_.Uniform(); }
  uint64_t Number() { return rng_.Next(); }

 private:
  SeededRng rng_;
};

}  // namespace llmctl::simulator
