// What a trainer is told about its job: the job specification, resolved (no defaults left to guess) and
// reduced to what concerns it. The agent writes it as JSON; the trainer reads it from --config.
//
// Units are in the names; counts are of sequences ("samples") or tokens as said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::contract {

struct ModelConfig {
  std::string architecture;  // "llama"
  int layers = 0;
  int hidden_size = 0;
  int heads = 0;
  int kv_heads = 0;
  int ffn_size = 0;
  double rope_theta = 0;
  double norm_epsilon = 0;
  bool tie_embeddings = false;
  double init_std = 0;
};

struct DataConfig {
  std::string dataset;
  int sequence_length = 0;
};

struct OptimizerConfig {
  std::string type;  // "adamw"
  double learning_rate = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
};

struct ScheduleConfig {
  std::string type;  // "cosine", "constant"
  int64_t warmup_steps = 0;
  double min_learning_rate_factor = 0;
};

struct TrainingConfig {
  int64_t steps = 0;
  int global_batch_size = 0;  // samples per step, all ranks
  int micro_batch_size = 0;   // samples
  std::string precision;      // "fp32", "bf16"
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double gradient_clip_norm = 0;  // 0: off
  uint64_t seed = 0;
  int64_t validation_every_steps = 0;  // 0: off
  int64_t validation_samples = 0;      // 0: all
  int nan_budget = 0;
};

struct CheckpointConfig {
  std::string directory;       // the job's own
  int64_t every_steps = 0;  // 0: only at the end
  int keep_last = 0;
};

// A committed checkpoint to go on from.
struct ResumePoint {
  int64_t step = 0;
  std::string path;
  std::string manifest_digest;
};

// Where a job keeps its checkpoints and curves: a folder of its own, so that jobs may name the same directory.
std::string JobDirectory(absl::string_view checkpoint_directory, absl::string_view job);

struct TrainerConfig {
  std::string job;
  std::string job_name;
  std::string spec_digest;  // SHA-256 of the canonical specification
  ModelConfig model;
  DataConfig data;
  TrainingConfig training;
  int data_parallel = 0;
  CheckpointConfig checkpoint;
  std::string init_from;
  double orphan_timeout_seconds = 0;
  std::vector<ResumePoint> resume_from;  // newest first; the first one that is whole is taken
  // Looks into checkpoint.directory for whole ones that are newer than all of resume_from, and goes on from those.
  std::optional<bool> search_checkpoints;
};

// Pretty-printed JSON with every field.
std::string EncodeTrainerConfig(const TrainerConfig& config);

// InvalidArgument names the field that is missing, mistyped or unknown.
absl::StatusOr<TrainerConfig> DecodeTrainerConfig(absl::string_view json);

}  // namespace llmctl::contract
