#include <cmath>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/shards/dataset.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

constexpr char kName[] = "manifest.json";
constexpr int kVersion = 1;

std::string PathOf(const std::string& directory) { return absl::StrCat(directory, "/", kName); }

SplitInfo DecodeSplit(ObjectReader& reader) {
  SplitInfo split;
  split.name = reader.String("name");
  // It becomes part of a path.
  if (split.name != "train" && split.name != "validation") reader.Fail("name", "expected train or validation");
  split.documents = reader.Integer("documents", 0);
  split.tokens = reader.Integer("tokens", 0);
  split.bin_checksum = reader.String("bin_checksum");
  split.idx_checksum = reader.String("idx_checksum");
  reader.Finish();
  return split;
}

}  // namespace

absl::StatusOr<DatasetManifest> DecodeManifest(absl::string_view text, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, what));
  JsonErrors errors;
  ObjectReader root(value, std::string(what), errors);
  DatasetManifest manifest;
  manifest.version = root.Integer("version", kVersion, kVersion);
  manifest.tokenizer = root.String("tokenizer");
  manifest.vocabulary_size = root.Integer("vocabulary_size", 1, 1 << 30);
  manifest.end_of_document = root.Integer("end_of_document", 0, 1 << 30);
  manifest.unigram_entropy = root.Number("unigram_entropy");
  for (ObjectReader& reader : root.Objects("splits")) manifest.splits.push_back(DecodeSplit(reader));
  manifest.source_json = JsonText(root.Raw("source"), /*indented=*/false);
  root.Finish();
  if (manifest.end_of_document >= manifest.vocabulary_size) {
    root.Fail("end_of_document", absl::StrCat(manifest.end_of_document, " is not in the vocabulary"));
  }
  LLM_RETURN_IF_ERROR(errors.status());
  return manifest;
}

absl::StatusOr<DatasetManifest> ReadManifest(const std::string& directory) {
  absl::StatusOr<std::string> text = ReadFile(PathOf(directory));
  if (!text.ok()) {
    return Annotate(text.status(), "dataset ", directory, " (make one with `llmctl data prepare --output ", directory,
                    "`)");
  }
  return DecodeManifest(*text, PathOf(directory));
}

absl::StatusOr<std::string> ManifestDigest(const std::string& directory) {
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(PathOf(directory)));
  return Sha256(text);
}

absl::Status WriteManifest(const std::string& directory, const DatasetManifest& manifest) {
  json splits = json::array();
  for (const SplitInfo& split : manifest.splits) {
    splits.push_back({{"name", split.name},
                      {"documents", split.documents},
                      {"tokens", split.tokens},
                      {"bin_checksum", split.bin_checksum},
                      {"idx_checksum", split.idx_checksum}});
  }
  LLM_ASSIGN_OR_RETURN(json source, ParseStrictJson(manifest.source_json, "source of the dataset"));
  json out = {{"version", manifest.version},
              {"tokenizer", manifest.tokenizer},
              {"vocabulary_size", manifest.vocabulary_size},
              {"end_of_document", manifest.end_of_document},
              {"unigram_entropy", manifest.unigram_entropy},
              {"splits", std::move(splits)},
              {"source", std::move(source)}};
  return WriteFileAtomically(PathOf(directory), JsonText(out, /*indented=*/true) + "\n");
}

}  // namespace llmctl::data
