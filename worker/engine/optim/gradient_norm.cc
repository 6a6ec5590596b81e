#include "worker/engine/optim/gradient_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace llmctl::engine {
namespace {

constexpr int64_t kBlock = 4096;
// Independent sums, so that additions need not wait for each other.
constexpr int64_t kLanes = 16;

double BlockSumOfSquares(const float* values, int64_t count) {
  std::array<double, kLanes> lanes = {};
  int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      double value = values[i + lane];
      lanes[static_cast<size_t>(lane)] += value * value;
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    double value = values[i];
    lanes[static_cast<size_t>(i - whole)] += value * value;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double GradientNorm(const float* gradients, int64_t count) {
  double sum = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    sum += BlockSumOfSquares(gradients + begin, std::min(kBlock, count - begin));
  }
  return std::sqrt(sum);
}

double ClipFactor(double norm, double max_norm) { return max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0; }

}  // namespace llmctl::engine
