// A Llama written with torch's operators and autograd, in fp64 or any other type: what the engine is held to.
//
// Weights are read from a model's flat vector by name. Slow and plain on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "common/layout/model_shape.h"
#include "common/layout/parameters.h"

namespace llmctl::engine {

struct ReferenceResult {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;  // fp64, by parameter name
  at::Tensor logits;                            // fp64, [samples, length, vocabulary]
};

// Rows of equal length; targets < 0 do not count.
struct ReferenceBatch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  int64_t samples = 1;
};

// Loss (a sum) and the gradients of gradient_scale * loss. `flat` holds the weights.
ReferenceResult RunReferenceLlama(const layout::ModelShape& shape, const std::vector<double>& flat,
                                  const ReferenceBatch& batch, double gradient_scale);

}  // namespace llmctl::engine
