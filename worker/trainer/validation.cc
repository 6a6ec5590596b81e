#include "worker/trainer/validation.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::trainer {

using engine::comm::Axis;

absl::StatusOr<std::unique_ptr<Validator>> Validator::Create(const contract::TrainerConfig& config,
                                                             const data::DatasetManifest& manifest,
                                                             const std::string& dataset_digest) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<data::ShardReader> reader,
                       data::ShardReader::Open(config.data.dataset, "validation"));
  LLM_ASSIGN_OR_RETURN(data::SplitInfo split, data::FindSplit(manifest, config.data.dataset, "validation"));
  LLM_ASSIGN_OR_RETURN(data::SamplerSpec spec,
                       data::MakeSamplerSpec(manifest, split, dataset_digest, config.data.sequence_length));
  const bool grouped = !spec.groups.empty();
  spec.groups.clear();
  int64_t windows = data::WindowCount(spec);
  if (windows == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "validation part of ", config.data.dataset, " holds ", reader->tokens(), " tokens, less than one sequence of ",
        config.data.sequence_length, " + 1; set training.validation.everySteps to 0 or prepare more text"));
  }
  int64_t asked = config.training.validation_samples;
  int64_t samples = asked > 0 ? std::min(asked, windows) : windows;
  // Without the run's seed: runs are compared by this loss.
  spec.shuffle = grouped && samples < windows;
  LLM_ASSIGN_OR_RETURN(data::Sampler sampler, data::Sampler::Create(std::move(spec)));
  return std::unique_ptr<Validator>(
      new Validator(std::move(reader), std::move(sampler), samples,
                    data::BatchOptionsOf(manifest, config.training.micro_batch_size)));
}

Validator::Validator(std::unique_ptr<data::ShardReader> reader, data::Sampler sampler, int64_t samples,
                     data::BatchOptions options)
    : reader_(std::move(reader)), sampler_(std::move(sampler)), samples_(samples), options_(options) {}

absl::StatusOr<double> Validator::Run(engine::Model& model, engine::comm::Communicator& communicator) const {
  data::SampleRange own =
      data::RankSamples(0, samples_, communicator.rank(Axis::kData), communicator.size(Axis::kData));
  std::array<double, 2> sums = {0, 0};  // loss, tokens
  for (int64_t begin = own.begin; begin < own.end; begin += options_.micro_batch_size) {
    data::SampleRange range = {begin, std::min<int64_t>(begin + options_.micro_batch_size, own.end)};
    LLM_ASSIGN_OR_RETURN(std::vector<data::MicroBatch> batches,
                         data::ReadMicroBatches(*reader_, sampler_, range, options_));
    for (const data::MicroBatch& micro : batches) {
      engine::LossSum loss = model.Forward({.samples = micro.samples,
                                            .sequence_length = micro.sequence_length,
                                            .tokens = micro.inputs.data(),
                                            .targets = micro.targets.data()});
      sums[0] += loss.loss;
      sums[1] += static_cast<double>(loss.tokens);
    }
  }
  LLM_RETURN_IF_ERROR(communicator.Collective("validation.sum", Axis::kData, engine::comm::Op::kAllReduceSum,
                                              {sums.data(), 2, engine::comm::DataType::kFloat64}));
  return sums[0] / std::max(sums[1], 1.0);
}

}  // namespace llmctl::trainer
