#include "worker/trainer/state.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/status.h"
#include "common/layout/memory.h"
#include "common/layout/parameters.h"
#include "worker/trainer/failure.h"

namespace llmctl::trainer {
namespace {

absl::StatusOr<std::unique_ptr<engine::Arena>> CreateArena(int64_t bytes, absl::string_view user) {
  absl::StatusOr<engine::Arena> arena = engine::Arena::Create(static_cast<size_t>(bytes));
  if (arena.ok()) return std::make_unique<engine::Arena>(*std::move(arena));
  return WithExitCode(Annotate(arena.status(), "memory for ", user), contract::kExitOutOfMemory);
}

absl::Status CreateOptimizer(const contract::OptimizerConfig& config, engine::kernels::Isa isa, TrainingState& state) {
  if (config.type != "adamw") {
    return absl::InvalidArgumentError(absl::StrCat("training.optimizer.type: expected adamw, found ", config.type));
  }
  LLM_ASSIGN_OR_RETURN(engine::kernels::Isa resolved, engine::kernels::ResolveIsa(isa));
  int64_t count = state.model().flat_size();
  int64_t bytes = 2 * layout::WholePages(count * static_cast<int64_t>(sizeof(float)));
  LLM_ASSIGN_OR_RETURN(state.moments, CreateArena(bytes, "the optimizer"));
  engine::AdamW::Moments moments;
  moments.first = state.moments->Allocate<float>(count, "first moment");
  moments.second = state.moments->Allocate<float>(count, "second moment");
  state.optimizer = std::make_unique<engine::AdamW>(config, moments, resolved);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OwnedModel> CreateOwnedModel(const layout::ModelShape& shape, const engine::ModelOptions& options) {
  OwnedModel owned;
  // Sizes of a shape that is none mean nothing.
  LLM_RETURN_IF_ERROR(layout::ValidateShape(shape));
  int64_t bytes = engine::ModelArenaBytes(shape, options);
  LLM_ASSIGN_OR_RETURN(owned.arena, CreateArena(bytes, "the model"));
  LLM_ASSIGN_OR_RETURN(owned.model, engine::CreateModel(shape, options, *owned.arena));
  return owned;
}

layout::ModelShape ShapeOf(const contract::ModelConfig& config, int vocabulary_size) {
  return {.architecture = config.architecture,
          .layers = config.layers,
          .hidden = config.hidden_size,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .ffn = config.ffn_size,
          .vocabulary = vocabulary_size,
          .rope_theta = config.rope_theta,
          .norm_epsilon = config.norm_epsilon,
          .tie_embeddings = config.tie_embeddings,
          .init_std = config.init_std};
}

absl::StatusOr<engine::Precision> ParsePrecision(const std::string& name) {
  if (name == "fp32") return engine::Precision::kFp32;
  if (name == "bf16") return engine::Precision::kBf16;
  return absl::InvalidArgumentError(absl::StrCat("training.precision: expected fp32 or bf16, found ", name));
}

absl::StatusOr<TrainingState> CreateTrainingState(const contract::TrainerConfig& config, int vocabulary_size,
                                                  engine::kernels::Isa isa, const ModelFactory& create_model,
                                                  contract::PhasePage* phases) {
  LLM_ASSIGN_OR_RETURN(engine::Precision precision, ParsePrecision(config.training.precision));
  engine::ModelOptions options = {.precision = precision,
                                  .samples_max = config.training.micro_batch_size,
                                  .sequence_length_max = config.data.sequence_length,
                                  .isa = isa,
                                  .phases = phases};
  TrainingState state;
  LLM_ASSIGN_OR_RETURN(state.weights, create_model(ShapeOf(config.model, vocabulary_size), options));
  LLM_RETURN_IF_ERROR(CreateOptimizer(config.training.optimizer, isa, state));
  // Otherwise every weight comes from a checkpoint, or the run does not begin.
  bool fresh = config.resume_from.empty() && config.init_from.empty();
  if (fresh) {
    state.model().Initialize(config.training.seed);
    state.model().CastWeights();
  }
  return state;
}

}  // namespace llmctl::trainer
