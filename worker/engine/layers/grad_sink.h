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

}  // namespace llmctl::engine
