#include "worker/engine/optim/adamw.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/numerics/optim/flat_model.h"

namespace llmctl::engine {
namespace {

contract::OptimizerConfig Config() {
  return {.type = "adamw", .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
}

struct Optimized {
  explicit Optimized(const std::vector<int64_t>& counts, const contract::OptimizerConfig& config = Config())
      : model(counts),
        first(static_cast<size_t>(model.flat_size())),
        second(static_cast<size_t>(model.flat_size())),
        optimizer(config, {first.data(), second.data()}, *kernels::ResolveIsa(kernels::Isa::kBest)) {}

  FlatModel model;
  std::vector<float> first;
  std::vector<float> second;
  AdamW optimizer;
};

// The definition, one weight at a time in fp64.
struct Reference {
  double w, m = 0, v = 0;
  int k = 0;
  void Update(const contract::OptimizerConfig& c, double rate, double g, bool decay) {
    ++k;
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    double m_hat = m / (1 - std::pow(c.beta1, k));
    double v_hat = v / (1 - std::pow(c.beta2, k));
    w -= rate * ((decay ? c.weight_decay * w : 0.0) + m_hat / (std::sqrt(v_hat) + c.epsilon));
  }
};

TEST(AdamW, TheFirstUpdateMovesEveryWeightByTheRate) {
  // Bias correction makes m = g and sqrt(v) = |g| on the first update, whatever the size of the gradient.
  Optimized o({3});
  o.model.mutable_parameters()[0].decay = false;
  float* g = o.model.gradients();
  g[0] = 1e-3f, g[1] = -5.0f, g[2] = 1e4f;

  o.optimizer.Update(o.model, /*learning_rate=*/0.1, /*gradient_factor=*/1);

  EXPECT_NEAR(o.model.master()[0], -0.1, 1e-5);
  EXPECT_NEAR(o.model.master()[1], 0.1, 1e-6);
  EXPECT_NEAR(o.model.master()[2], -0.1, 1e-6);
}

TEST(AdamW, FollowsItsDefinitionOverManyUpdates) {
  Optimized o({1, 1});
  o.model.mutable_parameters()[1].decay = false;
  Reference decaying{.w = 0.5}, plain{.w = -0.25};
  float* w = o.model.master();
  w[0] = 0.5f, w[16] = -0.25f;

  for (int i = 0; i < 50; ++i) {
    double rate = 0.01 / (1 + i);
    o.model.gradients()[0] = std::sin(static_cast<float>(i));
    o.model.gradients()[16] = std::cos(static_cast<float>(i));
    o.optimizer.Update(o.model, rate, 0.5);
    decaying.Update(Config(), rate, 0.5 * o.model.gradients()[0], true);
    plain.Update(Config(), rate, 0.5 * o.model.gradients()[16], false);
  }

  EXPECT_NEAR(w[0], decaying.w, 1e-6);
  EXPECT_NEAR(w[16], plain.w, 1e-6);
  EXPECT_EQ(o.optimizer.updates(), 50);
}

TEST(AdamW, WeightsWithoutGradientOnlyDecay) {
  Optimized o({2});
  o.model.master()[0] = 2.0f;

  o.optimizer.Update(o.model, 0.1, 1);

  EXPECT_FLOAT_EQ(o.model.master()[0], 2.0f * (1 - 0.1f * 0.1f));
  EXPECT_EQ(o.model.master()[1], 0.0f);
}

}  // namespace
}  // namespace llmctl::engine
