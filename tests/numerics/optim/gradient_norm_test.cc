#include "worker/engine/optim/gradient_norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace llmctl::engine {
namespace {

TEST(GradientNorm, OnesHaveTheSquareRootOfTheirNumber) {
  for (int64_t n : {0, 1, 15, 16, 17, 4096, 4097, 1000000}) {
    std::vector<float> ones(static_cast<size_t>(n), 1.0f);
    EXPECT_EQ(GradientNorm(ones.data(), n), std::sqrt(static_cast<double>(n))) << n;
  }
}

TEST(GradientNorm, SmallGradientsCountBesideALargeOne) {
  // In fp32 a million squares of 1e-4 would vanish beside the square of 1000.
  std::vector<float> values(1000001, 1e-4f);
  values[0] = 1000.0f;

  double rest = 1e6 * static_cast<double>(1e-4f) * static_cast<double>(1e-4f);
  EXPECT_NEAR(GradientNorm(values.data(), 1000001), std::sqrt(1e6 + rest), 1e-9);
}

TEST(GradientNorm, WhatIsNotFiniteShows) {
  std::vector<float> values(5000, 1.0f);
  values[4999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(GradientNorm(values.data(), 5000)));

  values[4999] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(GradientNorm(values.data(), 5000)));
}

TEST(ClipFactor, ShortensOnlyWhatIsTooLong) {
  EXPECT_EQ(ClipFactor(0.5, 1.0), 1.0);
  EXPECT_EQ(ClipFactor(4.0, 1.0), 0.25);
  EXPECT_EQ(ClipFactor(4.0, 0.0), 1.0);
}

}  // namespace
}  // namespace llmctl::engine
