#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/engine/checkpoint/box.h"
#include "worker/engine/checkpoint/manifest.h"

namespace llmctl::checkpoint {
namespace {

using nlohmann::json;

json EncodeModel(const layout::ModelShape& model) {
  return {{"architecture", model.architecture},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"ffn", model.ffn},
          {"vocabulary", model.vocabulary},
          {"rope_theta", model.rope_theta},
          {"norm_epsilon", model.norm_epsilon},
          {"tie_embeddings", model.tie_embeddings},
          {"init_std", model.init_std}};
}

layout::ModelShape DecodeModel(ObjectReader reader) {
  layout::ModelShape model;
  model.architecture = reader.String("architecture");
  model.layers = reader.Integer("layers", 1);
  model.hidden = reader.Integer("hidden", 1);
  model.heads = reader.Integer("heads", 1);
  model.kv_heads = reader.Integer("kv_heads", 1);
  model.ffn = reader.Integer("ffn", 1);
  model.vocabulary = reader.Integer("vocabulary", 1);
  model.rope_theta = reader.Number("rope_theta");
  model.norm_epsilon = reader.Number("norm_epsilon");
  model.tie_embeddings = reader.Bool("tie_embeddings");
  model.init_std = reader.Number("init_std");
  reader.Finish();
  return model;
}

json EncodeLedger(const Ledger& ledger) {
  json out = json::array();
  for (const LedgerSegment& segment : ledger.segments()) {
    json skips = json::array();
    for (const SampleRun& skip : segment.skips) {
      skips.push_back({{"first_sample", skip.first_sample}, {"last_sample", skip.last_sample}});
    }
    out.push_back({{"sampler_digest", segment.sampler_digest},
                   {"first_sample", segment.first_sample},
                   {"last_sample", segment.last_sample},
                   {"generation", segment.generation},
                   {"skips", std::move(skips)}});
  }
  return out;
}

Ledger DecodeLedger(ObjectReader& root) {
  std::vector<LedgerSegment> segments;
  for (ObjectReader& reader : root.Objects("ledger")) {
    LedgerSegment segment;
    segment.sampler_digest = reader.String("sampler_digest");
    segment.first_sample = reader.Integer("first_sample", 0);
    // One below the largest, as the next sample must have an index too.
    segment.last_sample = reader.Integer("last_sample", 0, std::numeric_limits<int64_t>::max() - 1);
    segment.generation = reader.Integer("generation", 0);
    for (ObjectReader& skip : reader.Objects("skips")) {
      segment.skips.push_back(
          {skip.Integer("first_sample", 0), skip.Integer("last_sample", 0, std::numeric_limits<int64_t>::max() - 1)});
      skip.Finish();
    }
    reader.Finish();
    segments.push_back(std::move(segment));
  }
  absl::Status valid = Ledger::Check(segments);
  if (!valid.ok()) root.Fail("ledger", valid.message());
  return Ledger(std::move(segments));
}

json EncodeFiles(const std::map<std::string, FileRecord>& files) {
  json out = json::object();
  for (const auto& [name, file] : files) out[name] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  return out;
}

json EncodeTensors(const std::map<std::string, TensorRecord>& tensors) {
  json out = json::object();
  for (const auto& [name, tensor] : tensors) {
    out[name] = {
        {"file", tensor.file}, {"dtype", std::string(DataTypeName(tensor.type))}, {"checksum", tensor.checksum}};
  }
  return out;
}

void DecodeFiles(ObjectReader& root, Manifest& manifest) {
  for (auto& [name, reader] : root.ObjectMap("files")) {
    // The name becomes part of a path: a hostile manifest must not lead out of its directory.
    if (!IsTensorFileName(name)) root.Fail("files", absl::StrCat("\"", name, "\" is no name of a tensor file"));
    manifest.files[name] = {reader.Integer("bytes", 0), reader.String("checksum")};
    reader.Finish();
  }
}

void DecodeTensors(ObjectReader& root, Manifest& manifest) {
  for (auto& [name, reader] : root.ObjectMap("tensors")) {
    absl::StatusOr<SliceName> slice = ParseSliceName(name);
    if (!slice.ok()) root.Fail("tensors", slice.status().message());
    absl::StatusOr<DataType> type = ParseDataType(reader.String("dtype"));
    if (!type.ok()) reader.Fail("dtype", type.status().message());
    TensorRecord record{reader.String("file"), type.value_or(DataType::kU8), reader.String("checksum")};
    if (!manifest.files.contains(record.file)) {
      reader.Fail("file", absl::StrCat("\"", record.file, "\" is not in \"files\""));
    }
    reader.Finish();
    manifest.tensors[name] = std::move(record);
  }
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  json out = {{"version", manifest.version},
              {"job", manifest.job},
              {"step", manifest.step},
              {"attempt", manifest.attempt},
              {"generation", manifest.generation},
              {"spec_digest", manifest.spec_digest},
              {"model", EncodeModel(manifest.model)},
              {"dataset_digest", manifest.dataset_digest},
              {"sampler_digest", manifest.sampler_digest},
              {"ledger", EncodeLedger(manifest.ledger)},
              {"consumed_samples", manifest.consumed_samples},
              {"consumed_tokens", manifest.consumed_tokens},
              {"optimizer", {{"type", manifest.optimizer.type}, {"step", manifest.optimizer.step}}},
              {"seed", manifest.seed},
              {"numerics", manifest.numerics},
              {"files", EncodeFiles(manifest.files)},
              {"tensors", EncodeTensors(manifest.tensors)}};
  return JsonText(out, /*indented=*/true) + "\n";
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view text) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, kManifestName));
  JsonErrors errors;
  ObjectReader root(value, kManifestName, errors);
  Manifest manifest;
  manifest.version = root.Integer("version", kManifestVersion, kManifestVersion);
  manifest.job = root.String("job");
  manifest.step = root.Integer("step", 0);
  manifest.attempt = root.Integer("attempt", 0);
  manifest.generation = root.Integer("generation", 0);
  manifest.spec_digest = root.String("spec_digest");
  manifest.model = DecodeModel(root.Object("model"));
  manifest.dataset_digest = root.String("dataset_digest");
  manifest.sampler_digest = root.String("sampler_digest");
  manifest.ledger = DecodeLedger(root);
  manifest.consumed_samples = root.Integer("consumed_samples", 0);
  if (manifest.consumed_samples != manifest.ledger.next_sample()) {
    root.Fail("consumed_samples", absl::StrCat("is ", manifest.consumed_samples, ", but the ledger ends before sample ",
                                               manifest.ledger.next_sample()));
  }
  manifest.consumed_tokens = root.Integer("consumed_tokens", 0);
  ObjectReader optimizer = root.Object("optimizer");
  manifest.optimizer = {optimizer.String("type"), optimizer.Integer("step", 0)};
  optimizer.Finish();
  manifest.seed = root.Unsigned("seed");
  manifest.numerics = root.Strings("numerics");
  DecodeFiles(root, manifest);
  DecodeTensors(root, manifest);
  root.Finish();
  LLM_RETURN_IF_ERROR(errors.status());
  return manifest;
}

}  // namespace llmctl::checkpoint
