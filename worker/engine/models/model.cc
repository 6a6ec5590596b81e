#include "worker/engine/models/model.h"

#include <c10/core/InferenceMode.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/engine/memory/buffer_set.h"
#include "worker/engine/models/llama.h"

namespace llmctl::engine {
namespace {

layout::MemoryOptions ToMemoryOptions(const ModelOptions& options) {
  return {.precision = options.precision, .samples = options.samples_max,
          .sequence_length = options.sequence_length_max, .training = options.training};
}

template <typename A>
std::unique_ptr<Model> MakeLlama(const layout::ModelShape& shape, const ModelOptions& options, kernels::Isa isa,
                                 const BufferSet& buffers) {
  return std::make_unique<Llama<A>>(shape, options, kernels::Kernels<A>(isa), buffers);
}

}  // namespace

int64_t ModelArenaBytes(const layout::ModelShape& shape, const ModelOptions& options) {
  return layout::Sum(layout::ModelBuffers(shape, ToMemoryOptions(options))).total();
}

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const layout::ModelShape& shape, const ModelOptions& options,
                                                   Arena& arena) {
  LLM_RETURN_IF_ERROR(layout::ValidateShape(shape));
  if (options.samples_max < 1 || options.sequence_length_max < 1) {
    return absl::InvalidArgumentError(absl::StrCat("create model: expected a micro-batch of at least one token, found ",
                                                   options.samples_max, " samples of ", options.sequence_length_max));
  }
  LLM_ASSIGN_OR_RETURN(kernels::Isa isa, kernels::ResolveIsa(options.isa));
  c10::InferenceMode inference;
  BufferSet buffers(layout::ModelBuffers(shape, ToMemoryOptions(options)), arena);
  switch (options.precision) {
    case Precision::kFp32: return MakeLlama<float>(shape, options, isa, buffers);
    case Precision::kBf16: return MakeLlama<kernels::Bf16>(shape, options, isa, buffers);
    case Precision::kFp64: return MakeLlama<double>(shape, options, isa, buffers);
  }
  return absl::InternalError("unreachable");
}

}  // namespace llmctl::engine
