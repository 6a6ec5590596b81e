#include "worker/agent/rpc/job_config.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/status.h"
#include "common/spec/digest.h"
#include "common/spec/duration.h"
#include "common/spec/validate.h"
#include "llmctl/v1/job.pb.h"
#include "llmctl/v1/worker_link.pb.h"
#include "worker/agent/rpc/link_mapping.h"

namespace llmctl::agent {
namespace {

contract::ModelConfig ToModel(const v1::Model& model) {
  return {.architecture = model.architecture(),
          .layers = model.layers(),
          .hidden_size = model.hidden_size(),
          .heads = model.heads(),
          .kv_heads = model.kv_heads(),
          .ffn_size = model.ffn_size(),
          .rope_theta = model.rope_theta(),
          .norm_epsilon = model.norm_epsilon(),
          .tie_embeddings = model.tie_embeddings(),
          .init_std = model.init_std()};
}

contract::TrainingConfig ToTraining(const v1::JobSpec& spec) {
  const v1::Training& training = spec.training();
  const v1::Optimizer& optimizer = training.optimizer();
  const v1::Schedule& schedule = training.schedule();
  return {.steps = training.steps(),
          .global_batch_size = training.global_batch_size(),
          .micro_batch_size = training.micro_batch_size(),
          .precision = training.precision(),
          .optimizer = {.type = optimizer.type(),
                        .learning_rate = optimizer.learning_rate(),
                        .beta1 = optimizer.beta1(),
                        .beta2 = optimizer.beta2(),
                        .epsilon = optimizer.epsilon(),
                        .weight_decay = optimizer.weight_decay()},
          .schedule = {.type = schedule.type(),
                       .warmup_steps = schedule.warmup_steps(),
                       .min_learning_rate_factor = schedule.min_learning_rate_factor()},
          .gradient_clip_norm = training.gradient_clip_norm(),
          .seed = training.seed(),
          .validation_every_steps = training.validation().every_steps(),
          .validation_samples = training.validation().samples(),
          .nan_budget = spec.fault_tolerance().nan_budget()};
}

}  // namespace

absl::StatusOr<contract::TrainerConfig> ToTrainerConfig(const v1::StartRanks& start) {
  v1::JobSpec spec = start.spec();
  spec::ApplyDefaults(spec);
  absl::StatusOr<absl::Duration> orphan_timeout = spec::ParseDuration(spec.fault_tolerance().orphan_timeout());
  if (!orphan_timeout.ok()) return Annotate(orphan_timeout.status(), "faultTolerance.orphanTimeout");
  contract::TrainerConfig config;
  config.job = start.generation().job();
  config.job_name = spec.metadata().name();
  config.spec_digest = spec::SpecDigest(start.spec());
  config.model = ToModel(spec.model());
  config.data = {.dataset = spec.data().dataset(), .sequence_length = spec.data().sequence_length()};
  config.training = ToTraining(spec);
  if (start.micro_batch_size() > 0) config.training.micro_batch_size = start.micro_batch_size();
  // 0 means one rank per device, which is what the gang's size says.
  config.data_parallel = spec.parallelism().data() > 0 ? spec.parallelism().data() : start.world_size();
  config.checkpoint = {.directory = contract::JobDirectory(spec.checkpoint().directory(), config.job),
                       .every_steps = spec.checkpoint().every_steps(),
                       .keep_last = spec.checkpoint().keep_last()};
  config.init_from = spec.init_from();
  config.orphan_timeout_seconds = absl::ToDoubleSeconds(*orphan_timeout);
  for (const v1::CommittedCheckpoint& checkpoint : start.checkpoints()) {
    config.resume_from.push_back(
        {.step = checkpoint.step(), .path = checkpoint.path(), .manifest_digest = checkpoint.manifest_digest()});
  }
  if (start.search_checkpoints()) config.search_checkpoints = true;
  return config;
}

StartOrdered ToStartOrder(const v1::StartRanks& start) {
  StartOrdered order = {.generation = ToId(start.generation()), .world_size = start.world_size()};
  for (const v1::RankAssignment& rank : start.ranks()) {
    order.ranks.push_back({.rank = rank.rank(), .device = rank.device()});
  }
  for (const v1::RankAddress& address : start.rank_table()) {
    order.rank_table.push_back(
        {.rank = address.rank(), .node = address.node(), .fabric_address = address.fabric_address()});
  }
  absl::StatusOr<contract::TrainerConfig> config = ToTrainerConfig(start);
  if (!config.ok()) {
    order.refusal = absl::StrCat("the job's specification: ", config.status().message());
    return order;
  }
  order.start.trainer_config = contract::EncodeTrainerConfig(*config);
  order.start.env = {start.spec().env().begin(), start.spec().env().end()};
  order.start.paths = {config->data.dataset, start.spec().checkpoint().directory()};
  if (!config->init_from.empty()) order.start.paths.push_back(config->init_from);
  order.start.trainer_digest = start.trainer_digest();
  order.start.orphan_timeout = absl::Seconds(config->orphan_timeout_seconds);
  return order;
}

const std::set<std::string>& FieldsNotForTheTrainer() {
  static const std::set<std::string> fields = {
      "api_version", "kind", "metadata.project", "metadata.labels",
      // Placement.
      "resources.workers.min", "resources.workers.max", "resources.devices_per_worker", "priority",
      // The coordinator's policy of retries and ends.
      "fault_tolerance.max_restarts", "fault_tolerance.max_attempts_without_progress",
      "fault_tolerance.hang_after", "time_limit",
      // The process environment, by the agent.
      "env"};
  return fields;
}

}  // namespace llmctl::agent
