#include "worker/trainer/generate_command.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/dataset_tokenizer.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/engine/checkpoint/checkpoint.h"
#include "worker/engine/models/model.h"
#include "worker/trainer/state.h"

namespace llmctl::trainer {
namespace {

absl::StatusOr<OwnedModel> LoadModel(const GenerateOptions& options, int vocabulary_size) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<checkpoint::CheckpointReader> reader,
                       checkpoint::CheckpointReader::Open(options.checkpoint));
  const layout::ModelShape& shape = reader->manifest().model;
  if (shape.vocabulary != vocabulary_size) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", options.checkpoint, " has a vocabulary of ",
                                                   shape.vocabulary, ", dataset ", options.dataset, " one of ",
                                                   vocabulary_size, ": name the dataset it was trained on"));
  }
  LLM_ASSIGN_OR_RETURN(engine::Precision precision, ParsePrecision(options.precision));
  LLM_ASSIGN_OR_RETURN(OwnedModel owned, CreateOwnedModel(shape, {.precision = precision,
                                                                  .sequence_length_max = options.context,
                                                                  .training = false,
                                                                  .isa = options.isa}));
  std::vector<checkpoint::SliceTarget> targets;
  for (const engine::Parameter& parameter : owned.model->parameters()) {
    targets.push_back({.tensor = parameter.name,
                       .box = checkpoint::WholeBox(parameter.shape),
                       .data = owned.model->master() + parameter.offset});
  }
  LLM_RETURN_IF_ERROR(Annotate(reader->Load(targets), "checkpoint ", options.checkpoint));
  owned.model->CastWeights();
  return owned;
}

}  // namespace

absl::Status Generate(const GenerateOptions& options, const std::function<void(absl::string_view)>& print) {
  LLM_ASSIGN_OR_RETURN(data::DatasetManifest manifest, data::ReadManifest(options.dataset));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<data::Tokenizer> tokenizer,
                       data::OpenDatasetTokenizer(options.dataset, manifest));
  LLM_ASSIGN_OR_RETURN(OwnedModel owned, LoadModel(options, manifest.vocabulary_size));

  // Every document of the training stream follows an end of document: so does the prompt.
  std::vector<int32_t> tokens = {tokenizer->end_of_document()};
  tokenizer->Encode(options.prompt, tokens);
  std::vector<float> logits(static_cast<size_t>(manifest.vocabulary_size));
  KeyedRandom random(options.seed, "generate");
  Utf8Stream text;
  for (int64_t i = 0; i < options.tokens; ++i) {
    int64_t seen = std::min<int64_t>(static_cast<int64_t>(tokens.size()), options.context);
    owned.model->LastLogits(tokens.data() + (static_cast<int64_t>(tokens.size()) - seen), seen, logits.data());
    int32_t next = SampleToken(logits, options.sampling, random.Uniform(static_cast<uint64_t>(i)));
    if (next == tokenizer->end_of_document()) break;
    tokens.push_back(next);
    print(text.Push(tokenizer->Decode({next})));
  }
  print(text.Finish());
  return absl::OkStatus();
}

}  // namespace llmctl::trainer
