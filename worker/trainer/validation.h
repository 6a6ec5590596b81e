// The loss on the validation part of the dataset: the same samples every time, split over the ranks and added up. The
// first ones in stream order, or where the part has groups, which lie one after another, some of everywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/contract/trainer_config.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/loader.h"
#include "worker/data/shards/sampler.h"
#include "worker/engine/comm/collective.h"
#include "worker/engine/models/model.h"

namespace llmctl::trainer {

class Validator {
 public:
  // Looks at training.validation_samples sequences, or at all there are. FailedPrecondition if there is none.
  static absl::StatusOr<std::unique_ptr<Validator>> Create(const contract::TrainerConfig& config,
                                                           const data::DatasetManifest& manifest,
                                                           const std::string& dataset_digest);

  // Mean loss in nats a token; the same number on every rank.
  absl::StatusOr<double> Run(engine::Model& model, engine::comm::Communicator& communicator) const;

 private:
  Validator(std::unique_ptr<data::ShardReader> reader, data::Sampler sampler, int64_t samples,
            data::BatchOptions options);

  std::unique_ptr<data::ShardReader> reader_;
  const data::Sampler sampler_;
  const int64_t samples_;
  const data::BatchOptions options_;
};

}  // namespace llmctl::trainer
