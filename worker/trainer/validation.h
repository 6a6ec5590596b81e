// The loss on the validation part of the dataset: the same samples every time, in stream order, split over the
// ranks and added up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/contract/trainer_config.h"
#include "worker/data/shards/dataset.h"
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
  Validator(std::unique_ptr<data::ShardReader> reader, data::SamplerSpec sampler, int64_t samples,
            int micro_batch_size, int vocabulary_size);

  std::unique_ptr<data::ShardReader> reader_;
  const data::SamplerSpec sampler_;
  const int64_t samples_;
  const int micro_batch_size_;
  const int vocabulary_size_;
};

}  // namespace llmctl::trainer
