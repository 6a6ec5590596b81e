#include "tests/fuzz/data_targets.h"

#include <cstring>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "worker/data/filters/document_filter.h"
#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/normalize/utf8_repair.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/index_format.h"
#include "worker/data/tokenizer/bpe_tokenizer.h"
#include "worker/data/tokenizer/bpe_trainer.h"
#include "worker/engine/checkpoint/box.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace llmctl::fuzz {
namespace {

void RunSafetensors(absl::string_view bytes) {
  absl::StatusOr<checkpoint::SafetensorsHeader> header = checkpoint::ParseSafetensorsHeader(bytes, bytes.size());
  if (!header.ok()) return;
  int64_t at = header->data_offset;
  for (const checkpoint::TensorEntry& entry : header->tensors) {
    CHECK_EQ(header->data_offset + entry.offset, at) << entry.name;
    at += entry.bytes;
  }
  CHECK_EQ(at, static_cast<int64_t>(bytes.size()));
}

void RunSliceName(absl::string_view bytes) {
  absl::StatusOr<checkpoint::SliceName> slice = checkpoint::ParseSliceName(bytes);
  if (slice.ok()) CHECK_EQ(checkpoint::FormatSliceName(slice->tensor, slice->box), std::string(bytes));
}

void RunCheckpointManifest(absl::string_view bytes) {
  absl::StatusOr<checkpoint::Manifest> manifest = checkpoint::DecodeManifest(bytes);
  if (!manifest.ok()) return;
  std::string text = checkpoint::EncodeManifest(*manifest);
  absl::StatusOr<checkpoint::Manifest> again = checkpoint::DecodeManifest(text);
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(checkpoint::EncodeManifest(*again), text);
}

void RunDatasetManifest(absl::string_view bytes) {
  absl::StatusOr<data::DatasetManifest> manifest = data::DecodeManifest(bytes, "manifest");
  if (!manifest.ok()) return;
  CHECK_LT(manifest->end_of_document, manifest->vocabulary_size);
  for (const data::SplitInfo& split : manifest->splits) {
    int64_t at = 0;
    for (const data::GroupInfo& group : split.groups) at += group.end - group.begin;
    CHECK(split.groups.empty() || at == (split.packed.has_value() ? split.packed->rows : split.tokens));
  }
}

void RunIndex(absl::string_view bytes) {
  absl::StatusOr<data::IndexSummary> index = data::CheckIndex(bytes);
  if (!index.ok()) return;
  CHECK(index->documents >= 0 && index->tokens >= 0 && index->continued <= index->sequences);
  data::IndexView view = *data::IndexView::Create(bytes);
  int64_t tokens = 0;
  for (int64_t i = 0; i < index->sequences; ++i) tokens += view.length(i);
  CHECK_EQ(tokens, index->tokens);
}

void CheckDocuments(const data::ParsedChunk& out, data::InvalidUtf8Policy policy) {
  data::TextNormalizer normalizer({});
  std::string scratch, again;
  data::Repairs repairs, none;
  int64_t parts = 0;
  for (const data::ParsedDocument& document : out.documents) {
    CHECK_EQ(data::FindInvalidUtf8(document.text), absl::string_view::npos);
    CHECK_EQ(data::FindInvalidUtf8(document.id), absl::string_view::npos);
    CHECK(data::HasContent(document.text));
    parts += document.part > 0;
    absl::string_view normal = normalizer.Normalize(document.text, scratch, repairs);
    CHECK_EQ(data::FindInvalidUtf8(normal), absl::string_view::npos);
    CHECK_EQ(normal.find('\r'), absl::string_view::npos);
    CHECK_EQ(normal.find('\0'), absl::string_view::npos);
    CHECK_EQ(normalizer.Normalize(normal, again, none), normal);
  }
  CHECK(none == data::Repairs());
  CHECK_EQ(out.records, static_cast<int64_t>(out.documents.size() + out.rejects.size()) - parts);
  if (policy == data::InvalidUtf8Policy::kReject) CHECK_EQ(out.repairs.invalid_utf8, 0);
}

void RunChunk(absl::string_view bytes, data::InputFormat format) {
  for (data::InvalidUtf8Policy policy : {data::InvalidUtf8Policy::kReplace, data::InvalidUtf8Policy::kReject}) {
    data::Chunk chunk;
    chunk.format = format;
    chunk.bytes = std::string(bytes);
    chunk.bytes.reserve(bytes.size() + data::JsonLineParser::kPadding);
    data::ParsedChunk parsed;
    data::ChunkParser({.invalid_utf8 = policy, .document_bytes_max = 64}).Parse(chunk, parsed);
    CheckDocuments(parsed, policy);
  }
}

void RunJsonLines(absl::string_view bytes) { RunChunk(bytes, data::InputFormat::kJsonLines); }
void RunText(absl::string_view bytes) { RunChunk(bytes, data::InputFormat::kText); }

// Every rule is reached: none of few words drops a short input before.
data::FilterSettings FilterSettingsOf(data::FilterMode mode) {
  data::FilterSettings settings = data::FilterSettings::FineWeb();
  settings.mode = mode;
  settings.gopher_quality->words_min = 2;
  settings.gopher_quality->stop_words_min = 1;
  settings.c4->sentences_min = 1;
  settings.paragraphs = data::ParagraphSettings{.paragraphs_min = 1, .paragraph_characters_min = 5};
  return settings;
}

struct QualityFilters {
  explicit QualityFilters(data::FilterMode mode) : rules(FilterSettingsOf(mode)), filter(rules) {}
  data::FilterRules rules;
  data::DocumentFilter filter;
};

// What is measured must give the verdict that is reached step by step; a rewritten text is one of whole characters.
void CheckFilters(QualityFilters& filters, std::string text) {
  std::string rewritten;
  data::FilterStats stats = filters.filter.Measure(text, "en", rewritten);
  absl::StatusOr<data::Verdict> judged = data::Judge(stats, filters.rules.settings());
  CHECK(judged.ok()) << judged.status().message();
  data::Verdict verdict = filters.filter.Run(text, "en");
  CHECK_EQ(verdict.keep(), judged->keep());
  if (filters.rules.settings().mode == data::FilterMode::kDatatrove) {
    CHECK(verdict == *judged) << data::ReasonName(verdict.rule);
  }
  if (verdict.keep()) CHECK_EQ(text, rewritten);
  CHECK_EQ(data::FindInvalidUtf8(text), absl::string_view::npos);
}

void RunQualityFilters(absl::string_view bytes) {
  // Their tables are built once; what they remember of earlier texts changes nothing.
  static auto* const by_default = new QualityFilters(data::FilterMode::kDefault);
  static auto* const as_datatrove = new QualityFilters(data::FilterMode::kDatatrove);
  std::string text(bytes);
  data::ReplaceInvalidUtf8(text);
  CheckFilters(*by_default, text);
  CheckFilters(*as_datatrove, text);
}

void RunTokenizerJson(absl::string_view bytes) {
  absl::StatusOr<data::TokenizerDefinition> definition = data::ParseTokenizerJson(bytes, "tokenizer.json");
  if (!definition.ok()) return;
  std::string text = data::TokenizerJsonText(*definition);
  absl::StatusOr<data::TokenizerDefinition> again = data::ParseTokenizerJson(text, "again");
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(data::TokenizerJsonText(*again), text);
  bool nfc = definition->nfc;
  auto tokenizer = data::BpeTokenizer::Create(*std::move(definition), {.encoder_cache = 4096});
  if (!tokenizer.ok()) return;
  std::string sample = "the ships' 12345  \xc3\xa9\n \xff<|endoftext|><call>";
  std::vector<int32_t> ids;
  (*tokenizer)->Encode(sample, ids);
  for (int32_t id : ids) CHECK(id >= 0 && id < (*tokenizer)->vocabulary_size()) << id;
  if (!nfc) CHECK_EQ((*tokenizer)->Decode(ids), sample);
}

std::string SafetensorsSeed() {
  float x[3] = {1, 2, 3};
  checkpoint::TensorView view{"model.norm.weight@0:3", checkpoint::DataType::kF32, {3}, x};
  std::string file = checkpoint::SafetensorsHeaderText({&view, 1}, {{"format", "pt"}});
  return file.append(reinterpret_cast<const char*>(x), sizeof x);
}

std::string CheckpointManifestSeed() {
  checkpoint::Manifest manifest;
  manifest.job = "j-1";
  manifest.model = {"llama", 4, 256, 8, 4, 704, 260, 10000, 1e-5, true, 0.02};
  manifest.ledger.Append("sampler", 1, 8);
  manifest.ledger.AppendSkipped("sampler", 2, 8);
  manifest.consumed_samples = 16;
  manifest.optimizer = {"adamw", 2};
  manifest.numerics = {{"precision", "fp32"}};
  manifest.files["model.safetensors"] = {100, "abc"};
  manifest.tensors["w@0:2"] = {"model.safetensors", checkpoint::DataType::kF32, "def"};
  return checkpoint::EncodeManifest(manifest);
}

std::string IndexSeed(bool with_modes) {
  const int32_t lengths[] = {3, 1, 2};
  const int64_t offsets[] = {0, 6, 8}, marks[] = {0, 1, 3};
  std::string out = data::EncodeIndexHead({data::TokenType::kUint16, 3, 2});
  out.append(reinterpret_cast<const char*>(lengths), sizeof lengths);
  out.append(reinterpret_cast<const char*>(offsets), sizeof offsets);
  out.append(reinterpret_cast<const char*>(marks), sizeof marks);
  return with_modes ? out.append("\0\0\1", 3) : out;
}

// As small as a byte-level vocabulary can be, all in one line.
std::string TokenizerJsonSeed(data::Pattern pattern) {
  data::WordCounts words(pattern, /*nfc=*/pattern == data::Pattern::kQwen);
  words.AddText("the ships, the ship");
  absl::StatusOr<data::TokenizerDefinition> trained = data::TrainBpe(words, {.vocabulary_size = 264});
  CHECK(trained.ok()) << trained.status().message();
  trained->tokens.push_back("<call>");
  trained->added.push_back({"<call>", trained->vocabulary_size() - 1, /*special=*/false, /*normalized=*/true});
  return nlohmann::ordered_json::parse(data::TokenizerJsonText(*trained)).dump();
}

}  // namespace

std::vector<Target> DataTargets() {
  return {
      {"safetensors", RunSafetensors, {SafetensorsSeed()}},
      {"slice_name", RunSliceName, {"model.layers.0.mlp.up_proj.weight@0:352,0:256", "scalar@"}},
      {"checkpoint_manifest", RunCheckpointManifest, {CheckpointManifestSeed()}},
      {"dataset_manifest",
       RunDatasetManifest,
       {R"({"version": 1, "tokenizer": "byte", "vocabulary_size": 260, "end_of_document": 256, "unigram_entropy": 3.5,
            "source": {"a": [1]}, "splits": [{"name": "train", "documents": 1, "tokens": 9, "bin_checksum": "ab",
            "idx_checksum": "cd"}]})",
        R"({"version": 1, "tokenizer": "tokenizer.json", "tokenizer_digest": "ef", "vocabulary_size": 260,
            "end_of_document": 256, "unigram_entropy": 3.5, "packing": {"row_tokens": 9, "padding_id": 256},
            "source": {}, "splits": [{"name": "train", "documents": 2, "tokens": 12, "bin_checksum": "ab",
            "idx_checksum": "cd", "packed": {"rows": 2, "pieces": 3, "cut_documents": 1, "truncated_documents": 0,
            "truncated_tokens": 0, "padding_tokens": 6}, "groups": [{"name": "a", "begin": 0, "end": 1, "documents": 1,
            "tokens": 8, "weight": 0.5}, {"name": "b", "begin": 1, "end": 2, "documents": 1, "tokens": 4,
            "weight": 0.5}]}]})"}},
      {"index", RunIndex, {IndexSeed(false), IndexSeed(true)}},
      {"json_lines",
       RunJsonLines,
       {"{\"id\": 1, \"text\": \"a\\n\\u00e9\\ud83d\\ude42\"}\n{\"text\": \"b\"}\r\n\n{\"text\": null}",
        "{\"text\": \"e\xcc\x81 \\ud83d\", \"n\": 99999999999999999999999}"}},
      {"quality_filters",
       RunQualityFilters,
       {"The cat sat with the dog.\n- It said [12] that cookies... and more\n\nSee x@y.org:) \u4e2d\u6587\u3002",
        "to be, to be, to be, to be, to be, to be or not to be that is lorem ipsum {"}},
      {"tokenizer_json",
       RunTokenizerJson,
       {TokenizerJsonSeed(data::Pattern::kGpt2), TokenizerJsonSeed(data::Pattern::kQwen)}},
      {"text", RunText, {"caf\xe9 e\xcc\x81\r\n\xef\xbb\xbf\x01 \xf0\x9f\x99\x82"}},
  };
}

}  // namespace llmctl::fuzz
