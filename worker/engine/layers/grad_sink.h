// GradSink: learns when a weight gradient is complete, so that reduction can overlap with the backward pass.
#pragma once

#include "common/layout/parameters.h"

namespace llmctl::engine {

// A logical parameter and its place in the flat vectors (weights, gradients, moments).
using Parameter = layout::Parameter;

// Called once per parameter and backward pass, in backward order; the gradient has been added to the flat
// gradient vector by then.
class GradSink {
 public:
  virtual ~GradSink() = default;
  virtual void GradientReady(const Parameter& parameter) = 0;
};

// What a backward pass does to a weight gradient: the first micro-batch of a step sets it, which saves clearing and
// reading back as many bytes as the model has parameters.
enum class Accumulation { kSet, kAdd };

}  // namespace llmctl::engine
