// Precompiled for every engine library: narrow ATen headers, never torch/torch.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
