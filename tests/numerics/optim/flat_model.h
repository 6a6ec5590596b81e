// A Model that is nothing but its flat vectors: for what only looks at parameters and gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "worker/engine/models/model.h"

namespace llmctl::engine {

class FlatModel : public Model {
 public:
  // One parameter per count, each begun at a multiple of 16.
  explicit FlatModel(const std::vector<int64_t>& counts) {
    int64_t offset = 0;
    for (int64_t count : counts) {
      parameters_.push_back({.name = absl::StrCat("p", parameters_.size()), .shape = {count}, .offset = offset,
                             .count = count});
      offset += (count + 15) / 16 * 16;
    }
    master_.resize(static_cast<size_t>(offset));
    gradients_.resize(static_cast<size_t>(offset));
  }

  std::vector<Parameter>& mutable_parameters() { return parameters_; }

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  int64_t flat_size() const override { return static_cast<int64_t>(master_.size()); }
  float* master() override { return master_.data(); }
  float* gradients() override { return gradients_.data(); }
  void Initialize(uint64_t) override {}
  void CastWeights() override {}
  void ZeroGradients() override { gradients_.assign(gradients_.size(), 0); }
  LossSum ForwardBackward(const MicroBatch&, double, GradSink* sink) override {
    for (size_t i = parameters_.size(); i-- > 0;) sink->GradientReady(parameters_[i]);
    return {};
  }
  LossSum Forward(const MicroBatch&) override { return {}; }
  void LastLogits(const int32_t*, int64_t, float*) override {}

 private:
  std::vector<Parameter> parameters_;
  std::vector<float> master_;
  std::vector<float> gradients_;
};

}  // namespace llmctl::engine
