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
// Bytes of them fit 64 bits with room to spare.
constexpr int64_t kTokensMax = int64_t{1} << 56;

std::string PathOf(const std::string& directory) { return absl::StrCat(directory, "/", kName); }

std::vector<GroupInfo> DecodeGroups(ObjectReader& split) {
  std::vector<GroupInfo> groups;
  for (ObjectReader& reader : split.Objects("groups")) {
    GroupInfo& group = groups.emplace_back();
    group.name = reader.String("name");
    group.begin = reader.Integer("begin", 0);
    group.end = reader.Integer("end", group.begin);
    group.documents = reader.Integer("documents", 0);
    group.tokens = reader.Integer("tokens", 0);
    group.weight = reader.Number("weight");
    if (!(group.weight >= 0 && group.weight <= 1)) reader.Fail("weight", "expected a share from 0 to 1");
    reader.Finish();
  }
  return groups;
}

// Groups lie end to end and cover the split, and their weights are shares.
void CheckGroups(const SplitInfo& split, ObjectReader& reader) {
  int64_t at = 0, tokens = 0;
  double weights = 0;
  for (const GroupInfo& group : split.groups) {
    if (group.begin != at) {
      reader.Fail("groups", absl::StrCat("group ", group.name, " begins at ", group.begin, ", expected ", at));
      return;
    }
    at = group.end;
    weights += group.weight;
    // Bounded by the split, so that sums cannot overflow.
    if (group.tokens > split.tokens - tokens) {
      reader.Fail("groups", absl::StrCat("groups have more tokens than the split's ", split.tokens));
      return;
    }
    tokens += group.tokens;
  }
  int64_t end = split.packed.has_value() ? split.packed->rows : split.tokens;
  if (at != end) reader.Fail("groups", absl::StrCat("the last group ends at ", at, ", the split at ", end));
  if (std::abs(weights - 1) > 1e-9) reader.Fail("groups", absl::StrCat("weights sum to ", weights, ", expected 1"));
}

PackedFigures DecodePacked(ObjectReader reader) {
  PackedFigures packed;
  packed.rows = reader.Integer("rows", 0);
  packed.pieces = reader.Integer("pieces", 0);
  packed.cut_documents = reader.Integer("cut_documents", 0);
  packed.truncated_documents = reader.Integer("truncated_documents", 0);
  packed.truncated_tokens = reader.Integer("truncated_tokens", 0);
  packed.padding_tokens = reader.Integer("padding_tokens", 0);
  reader.Finish();
  return packed;
}

SplitInfo DecodeSplit(ObjectReader& reader) {
  SplitInfo split;
  split.name = reader.String("name");
  // It becomes part of a path.
  if (split.name != "train" && split.name != "validation") reader.Fail("name", "expected train or validation");
  split.documents = reader.Integer("documents", 0);
  split.tokens = reader.Integer("tokens", 0, kTokensMax);
  split.bin_checksum = reader.String("bin_checksum");
  split.idx_checksum = reader.String("idx_checksum");
  if (reader.Has("packed")) split.packed = DecodePacked(reader.Object("packed"));
  if (reader.Has("groups")) {
    split.groups = DecodeGroups(reader);
    CheckGroups(split, reader);
  }
  reader.Finish();
  return split;
}

void DecodePacking(ObjectReader& root, DatasetManifest& manifest) {
  if (root.Has("packing")) {
    ObjectReader reader = root.Object("packing");
    manifest.packing = PackingInfo{.row_tokens = static_cast<int>(reader.Integer("row_tokens", 2, 1 << 30)),
                                   .padding_id = static_cast<int>(reader.Integer("padding_id", 0, 1 << 30))};
    reader.Finish();
    if (manifest.packing->padding_id >= manifest.vocabulary_size) {
      root.Fail("packing", absl::StrCat("padding_id ", manifest.packing->padding_id, " is not in the vocabulary"));
    }
  }
  for (const SplitInfo& split : manifest.splits) {
    if (split.packed.has_value() == manifest.packing.has_value()) continue;
    root.Fail("packing", absl::StrCat("split ", split.name, manifest.packing.has_value() ? " is not" : " is",
                                      " packed, the dataset is ", manifest.packing.has_value() ? "" : "not"));
  }
}

json EncodeSplit(const SplitInfo& split) {
  json out = {{"name", split.name},
              {"documents", split.documents},
              {"tokens", split.tokens},
              {"bin_checksum", split.bin_checksum},
              {"idx_checksum", split.idx_checksum}};
  if (split.packed.has_value()) {
    out["packed"] = {{"rows", split.packed->rows},
                     {"pieces", split.packed->pieces},
                     {"cut_documents", split.packed->cut_documents},
                     {"truncated_documents", split.packed->truncated_documents},
                     {"truncated_tokens", split.packed->truncated_tokens},
                     {"padding_tokens", split.packed->padding_tokens}};
  }
  for (const GroupInfo& group : split.groups) {
    out["groups"].push_back({{"name", group.name},
                             {"begin", group.begin},
                             {"end", group.end},
                             {"documents", group.documents},
                             {"tokens", group.tokens},
                             {"weight", group.weight}});
  }
  return out;
}

}  // namespace

absl::StatusOr<DatasetManifest> DecodeManifest(absl::string_view text, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, what));
  JsonErrors errors;
  ObjectReader root(value, std::string(what), errors);
  DatasetManifest manifest;
  manifest.version = root.Integer("version", kVersion, kVersion);
  manifest.tokenizer = root.String("tokenizer");
  if (root.Has("tokenizer_digest")) manifest.tokenizer_digest = root.String("tokenizer_digest");
  manifest.vocabulary_size = root.Integer("vocabulary_size", 1, 1 << 30);
  manifest.end_of_document = root.Integer("end_of_document", 0, 1 << 30);
  manifest.unigram_entropy = root.Number("unigram_entropy");
  for (ObjectReader& reader : root.Objects("splits")) manifest.splits.push_back(DecodeSplit(reader));
  DecodePacking(root, manifest);
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
  for (const SplitInfo& split : manifest.splits) splits.push_back(EncodeSplit(split));
  LLM_ASSIGN_OR_RETURN(json source, ParseStrictJson(manifest.source_json, "source of the dataset"));
  json out = {{"version", manifest.version},
              {"tokenizer", manifest.tokenizer},
              {"vocabulary_size", manifest.vocabulary_size},
              {"end_of_document", manifest.end_of_document},
              {"unigram_entropy", manifest.unigram_entropy},
              {"splits", std::move(splits)},
              {"source", std::move(source)}};
  // Absent where they say nothing: a dataset that needs neither is what earlier versions read.
  if (!manifest.tokenizer_digest.empty()) out["tokenizer_digest"] = manifest.tokenizer_digest;
  if (manifest.packing.has_value()) {
    out["packing"] = {{"row_tokens", manifest.packing->row_tokens}, {"padding_id", manifest.packing->padding_id}};
  }
  return WriteFileAtomically(PathOf(directory), JsonText(out, /*indented=*/true) + "\n");
}

}  // namespace llmctl::data
