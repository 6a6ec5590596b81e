// Runs an engine model on a small case, for tests that compare precisions and splits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "common/base/rng.h"
#include "worker/engine/models/model.h"

namespace llmctl::engine {

struct Case {
  std::string name;
  layout::ModelShape shape;
  int64_t samples = 2;
  int64_t length = 13;
  uint64_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

inline layout::ModelShape SmallShape() {
  layout::ModelShape shape;
  shape.architecture = "llama";
  shape.layers = 2;
  shape.hidden = 64;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 88;
  shape.vocabulary = 67;
  return shape;
}

// About a tenth of the targets do not count.
struct Batch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  int64_t valid = 0;
};

inline Batch MakeBatch(const Case& c) {
  Batch batch;
  SeededRng rng(c.seed);
  for (int64_t i = 0; i < c.samples * c.length; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(rng.Below(c.shape.vocabulary)));
    bool counts = rng.Below(10) != 0;
    batch.targets.push_back(counts ? static_cast<int32_t>(rng.Below(c.shape.vocabulary)) : -1);
    batch.valid += counts;
  }
  return batch;
}

// Weights far enough from their initial values that every term of every gradient matters.
inline std::vector<double> MakeWeights(const Case& c) {
  layout::ParameterTable table = layout::Parameters(c.shape);
  std::vector<double> flat(table.flat_size);
  for (const layout::Parameter& p : table.parameters) {
    KeyedRandom random(c.seed, p.name);
    for (int64_t i = 0; i < p.count; ++i) {
      double x = random.Normal(static_cast<uint64_t>(i));
      flat[p.offset + i] = static_cast<float>(p.init_std == 0 ? 1 + 0.1 * x : 0.12 * x);
    }
  }
  return flat;
}

// A model in an arena of its own, of exactly the planned size.
class EngineRun {
 public:
  EngineRun(const Case& c, ModelOptions options) : case_(c), options_(options) {
    options_.samples_max = std::max(options_.samples_max, c.samples);
    options_.sequence_length_max = std::max(options_.sequence_length_max, c.length);
    absl::StatusOr<Arena> arena = Arena::Create(ModelArenaBytes(c.shape, options_));
    EXPECT_TRUE(arena.ok()) << arena.status();
    arena_ = std::make_unique<Arena>(*std::move(arena));
    absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(c.shape, options_, *arena_);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  Model& model() { return *model_; }
  const Arena& arena() const { return *arena_; }

  void SetWeights(const std::vector<double>& flat) {
    for (size_t i = 0; i < flat.size(); ++i) {
      if (model_->master64() != nullptr) {
        model_->master64()[i] = flat[i];
      } else {
        model_->master()[i] = static_cast<float>(flat[i]);
      }
    }
    model_->CastWeights();
  }

  std::vector<double> Gradients() const {
    std::vector<double> flat(model_->flat_size());
    for (size_t i = 0; i < flat.size(); ++i) {
      flat[i] = model_->master64() != nullptr ? model_->gradients64()[i] : model_->gradients()[i];
    }
    return flat;
  }

  // Samples [begin, begin + count) of the batch.
  LossSum Backward(const Batch& batch, int64_t begin, int64_t count, GradSink* sink = nullptr) {
    int64_t at = begin * case_.length;
    return model_->ForwardBackward({.samples = count, .sequence_length = case_.length,
                                    .tokens = batch.tokens.data() + at, .targets = batch.targets.data() + at},
                                   1.0 / static_cast<double>(batch.valid), sink);
  }

 private:
  Case case_;
  ModelOptions options_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Model> model_;
};

// Largest difference of the parameter's elements, relative to the largest element that is expected in it, or to a
// hundredth of that in all parameters: a gradient that is zero by cancellation has no scale of its own.
inline double RelativeError(const layout::Parameter& p, const std::vector<double>& found,
                            const std::vector<double>& expected) {
  double scale = 0, difference = 0;
  for (double x : expected) scale = std::max(scale, 1e-2 * std::abs(x));
  for (int64_t i = p.offset; i < p.offset + p.count; ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    double d = std::abs(found[i] - expected[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  return difference / scale;
}

}  // namespace llmctl::engine
