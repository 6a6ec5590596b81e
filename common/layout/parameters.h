// The parameters of a model: names, shapes and places in the flat vectors of weights, gradients and moments.
//
// One table serves all who must agree: the engine lays its weights out by it, checkpoints name tensors after
// it, the optimizer reads which ones decay, the planner sums it up. Names are Hugging Face's. Offsets are
// multiples of 16 elements, so that every tensor starts on a vector boundary in any precision; the padding
// stays zero. Matrices that one GEMM handles together (q, k, v; gate, up) are adjacent without padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "common/layout/model_shape.h"

namespace llmctl::layout {

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // elements
  int64_t count = 0;   // elements
  bool decay = true;   // weight decay applies
  // Standard deviation of the initial values around 0; 0 means all ones.
  double init_std = 0;
};

struct ParameterTable {
  std::vector<Parameter> parameters;  // by offset
  int64_t flat_size = 0;              // elements, padding included
  int64_t count = 0;                  // elements, without padding
};

// InvalidArgument with every fault of the shape: unknown architecture, sizes that do not divide, ...
absl::Status ValidateShape(const ModelShape& shape);

// `shape` must be valid.
ParameterTable Parameters(const ModelShape& shape);

}  // namespace llmctl::layout
