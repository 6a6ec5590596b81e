#include "worker/contract/trainer_config.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/contract/json_fields.h"

namespace llmctl::contract {

// Found by argument-dependent lookup, hence not in an unnamed namespace.

template <typename V>
void VisitFields(V& visit, FieldsOf<ModelConfig> auto& m) {
  visit("architecture", m.architecture);
  visit("layers", m.layers);
  visit("hidden_size", m.hidden_size);
  visit("heads", m.heads);
  visit("kv_heads", m.kv_heads);
  visit("ffn_size", m.ffn_size);
  visit("rope_theta", m.rope_theta);
  visit("norm_epsilon", m.norm_epsilon);
  visit("tie_embeddings", m.tie_embeddings);
  visit("init_std", m.init_std);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<DataConfig> auto& m) {
  visit("dataset", m.dataset);
  visit("sequence_length", m.sequence_length);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<OptimizerConfig> auto& m) {
  visit("type", m.type);
  visit("learning_rate", m.learning_rate);
  visit("beta1", m.beta1);
  visit("beta2", m.beta2);
  visit("epsilon", m.epsilon);
  visit("weight_decay", m.weight_decay);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<ScheduleConfig> auto& m) {
  visit("type", m.type);
  visit("warmup_steps", m.warmup_steps);
  visit("min_learning_rate_factor", m.min_learning_rate_factor);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<TrainingConfig> auto& m) {
  visit("steps", m.steps);
  visit("global_batch_size", m.global_batch_size);
  visit("micro_batch_size", m.micro_batch_size);
  visit("precision", m.precision);
  visit("optimizer", m.optimizer);
  visit("schedule", m.schedule);
  visit("gradient_clip_norm", m.gradient_clip_norm);
  visit("seed", m.seed);
  visit("validation_every_steps", m.validation_every_steps);
  visit("validation_samples", m.validation_samples);
  visit("nan_budget", m.nan_budget);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<CheckpointConfig> auto& m) {
  visit("directory", m.directory);
  visit("every_steps", m.every_steps);
  visit("keep_last", m.keep_last);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<ResumePoint> auto& m) {
  visit("step", m.step);
  visit("path", m.path);
  visit("manifest_digest", m.manifest_digest);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<TrainerConfig> auto& m) {
  visit("job", m.job);
  visit("job_name", m.job_name);
  visit("spec_digest", m.spec_digest);
  visit("model", m.model);
  visit("data", m.data);
  visit("training", m.training);
  visit("data_parallel", m.data_parallel);
  visit("checkpoint", m.checkpoint);
  visit("init_from", m.init_from);
  visit("orphan_timeout_seconds", m.orphan_timeout_seconds);
  visit("resume_from", m.resume_from);
  visit("search_checkpoints", m.search_checkpoints);
}

std::string JobDirectory(absl::string_view checkpoint_directory, absl::string_view job) {
  return absl::StrCat(checkpoint_directory, "/", job);
}

std::string EncodeTrainerConfig(const TrainerConfig& config) {
  return DumpJson(FieldWriter::Write(config), /*indent=*/2) + "\n";
}

absl::StatusOr<TrainerConfig> DecodeTrainerConfig(absl::string_view json) {
  std::optional<Json> parsed = ParseJson(json);
  if (!parsed.has_value()) return absl::InvalidArgumentError("trainer configuration is not JSON");
  TrainerConfig config;
  absl::Status read = FieldReader::Read(*parsed, "", FieldReader::UnknownFields::kRefuse, config);
  if (!read.ok()) return Annotate(read, "trainer configuration");
  return config;
}

}  // namespace llmctl::contract
