// Writing shards and packing, on the tokens of a JSON-lines file that are in memory before the clock runs: the speed of
// writing in either mode, and what best-fit packing leaves of padding and cut documents beside first fit (documents as
// they come, each to the first row that holds it) and the plain stream.
//
// And how fast the loader reads either, in shuffled order, from files that are in memory: what training waits for when
// the prefetching thread cannot keep up.
//
// CPU seconds of one thread. The concat files are Megatron-LM's byte for byte: their SHA-256 is printed.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/pack/best_fit.h"
#include "worker/data/pack/packed_writer.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/loader.h"
#include "worker/data/shards/sampler.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

struct Options {
  std::string tokenizer;
  std::string corpus;
  std::string output;
  std::vector<int> sequence_lengths = {512, 2048, 8192};
  int64_t window_tokens = PackSettings().window_tokens;
};

struct Corpus {
  std::vector<std::vector<int32_t>> documents;
  int64_t tokens = 0;
  int vocabulary_size = 0;
};

absl::StatusOr<Corpus> ReadCorpus(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(options.tokenizer));
  std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();
  Corpus corpus;
  corpus.vocabulary_size = tokenizer->vocabulary_size();
  std::ifstream file(options.corpus, std::ios::binary);
  std::vector<int32_t> tokens;
  for (std::string line; std::getline(file, line);) {
    json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object() || !value.contains("text")) {
      return absl::InvalidArgumentError(absl::StrCat("a line without \"text\": ", line.substr(0, 80)));
    }
    tokens.clear();
    encoder->Encode(value["text"].get<std::string>(), tokens);
    if (tokens.empty()) continue;
    tokens.push_back(tokenizer->end_of_document());
    corpus.tokens += static_cast<int64_t>(tokens.size());
    corpus.documents.push_back(tokens);
  }
  if (corpus.documents.empty()) return absl::NotFoundError(absl::StrCat(options.corpus, ": no documents"));
  return corpus;
}

// Adds all documents; `seconds` is what that and finishing cost.
absl::StatusOr<SplitInfo> WriteAll(ShardWriter& writer, const Corpus& corpus, double& seconds) {
  double start = CpuSeconds();
  for (const std::vector<int32_t>& document : corpus.documents) LLM_RETURN_IF_ERROR(writer.AddDocument(document));
  absl::StatusOr<SplitInfo> split = writer.Finish();
  seconds = CpuSeconds() - start;
  return split;
}

// Tokens a CPU second of an epoch in steps of 64 samples.
absl::Status BenchLoader(const Options& options, const Corpus& corpus, const SplitInfo& split, int sequence_length) {
  DatasetManifest manifest{.tokenizer = "bench", .vocabulary_size = corpus.vocabulary_size};
  manifest.splits = {split};
  manifest.source_json = "{}";
  if (split.packed.has_value()) manifest.packing = PackingInfo{sequence_length + 1, 0};
  LLM_RETURN_IF_ERROR(WriteManifest(options.output, manifest));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardReader> reader, ShardReader::Open(options.output, split.name));
  LLM_ASSIGN_OR_RETURN(SamplerSpec spec, MakeSamplerSpec(manifest, split, "bench", sequence_length));
  LLM_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(spec));
  double start = CpuSeconds();
  int64_t tokens = 0, documents = 0;
  for (int64_t first = 0; first < sampler.windows(); first += 64) {
    LLM_ASSIGN_OR_RETURN(std::vector<MicroBatch> batches,
                         ReadMicroBatches(*reader, sampler, {first, first + 64}, BatchOptionsOf(manifest, 8)));
    for (const MicroBatch& batch : batches) {
      tokens += static_cast<int64_t>(batch.inputs.size());
      documents += static_cast<int64_t>(batch.document_starts.size());
    }
  }
  double seconds = CpuSeconds() - start;
  std::cout << json{{"what", "loader"},
                    {"mode", split.packed.has_value() ? "packed" : "concat"},
                    {"sequence_length", sequence_length},
                    {"document_starts", documents},
                    {"cpu_s", seconds},
                    {"Mtokens/s", static_cast<double>(tokens) / 1e6 / seconds}}
                   .dump()
            << "\n";
  return absl::OkStatus();
}

absl::Status BenchConcat(const Options& options, const Corpus& corpus) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> writer,
                       ShardWriter::Create(options.output, "train", corpus.vocabulary_size));
  double seconds = 0;
  LLM_ASSIGN_OR_RETURN(SplitInfo split, WriteAll(*writer, corpus, seconds));
  LLM_ASSIGN_OR_RETURN(std::string bin, ReadFile(absl::StrCat(options.output, "/train.bin")));
  LLM_ASSIGN_OR_RETURN(std::string idx, ReadFile(absl::StrCat(options.output, "/train.idx")));
  std::cout << json{{"what", "concat"},
                    {"documents", split.documents},
                    {"tokens", split.tokens},
                    {"cpu_s", seconds},
                    {"Mtokens/s", split.tokens / 1e6 / seconds},
                    {"bin_sha256", Sha256(bin)},
                    {"idx_sha256", Sha256(idx)}}
                   .dump()
            << "\n";
  for (int length : options.sequence_lengths) LLM_RETURN_IF_ERROR(BenchLoader(options, corpus, split, length));
  return absl::OkStatus();
}

// The pieces that packing packs: whole rows apart, as any rule gives those a row each.
std::vector<int32_t> Pieces(const Corpus& corpus, int row_tokens, int64_t& whole_rows) {
  std::vector<int32_t> pieces;
  for (const std::vector<int32_t>& document : corpus.documents) {
    whole_rows += static_cast<int64_t>(document.size()) / row_tokens;
    int32_t rest = static_cast<int32_t>(document.size()) % row_tokens;
    if (rest > 0) pieces.push_back(rest);
  }
  return pieces;
}

// Rows that first fit begins: a tree of the most room under each node finds the first row that holds a piece.
int64_t FirstFitRows(const std::vector<int32_t>& pieces, int32_t capacity) {
  size_t leaves = 1;
  while (leaves < pieces.size()) leaves *= 2;
  std::vector<int32_t> room(2 * leaves, capacity);
  size_t rows = 0;
  for (int32_t piece : pieces) {
    size_t node = 1;
    while (node < leaves) node = 2 * node + (room[2 * node] >= piece ? 0 : 1);
    rows = std::max(rows, node - leaves + 1);
    for (room[node] -= piece, node /= 2; node > 0; node /= 2) room[node] = std::max(room[2 * node], room[2 * node + 1]);
  }
  return static_cast<int64_t>(rows);
}

// Documents that the windows of a stream cut: those with an edge inside.
int64_t CutByStream(const Corpus& corpus, int64_t length) {
  int64_t cut = 0, begin = 0;
  for (const std::vector<int32_t>& document : corpus.documents) {
    int64_t end = begin + static_cast<int64_t>(document.size());
    if (begin / length != (end - 1) / length) ++cut;
    begin = end;
  }
  return cut;
}

absl::Status BenchPacked(const Options& options, const Corpus& corpus, int sequence_length) {
  PackSettings settings{.sequence_length = sequence_length, .window_tokens = options.window_tokens};
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> writer,
                       CreatePackedWriter(options.output, "train", corpus.vocabulary_size, settings));
  double seconds = 0;
  LLM_ASSIGN_OR_RETURN(SplitInfo split, WriteAll(*writer, corpus, seconds));
  int64_t whole_rows = 0;
  std::vector<int32_t> pieces = Pieces(corpus, settings.row_tokens(), whole_rows);
  double start = CpuSeconds();
  int64_t best_fit = whole_rows + PackBestFitDecreasing(pieces, settings.row_tokens()).row_count;
  double best_fit_seconds = CpuSeconds() - start;
  start = CpuSeconds();
  int64_t first_fit = whole_rows + FirstFitRows(pieces, settings.row_tokens());
  double first_fit_seconds = CpuSeconds() - start;
  auto padding = [&](int64_t rows) {
    return 1 - static_cast<double>(corpus.tokens) / static_cast<double>(rows * settings.row_tokens());
  };
  std::cout << json{{"what", "packed"},
                    {"sequence_length", sequence_length},
                    {"rows", split.packed->rows},
                    {"padding_share", padding(split.packed->rows)},
                    {"cut_documents", split.packed->cut_documents},
                    {"cpu_s", seconds},
                    {"Mtokens/s", split.tokens / 1e6 / seconds},
                    {"one_window", {{"rows", best_fit}, {"padding_share", padding(best_fit)},
                                    {"cpu_s", best_fit_seconds}}},
                    {"first_fit", {{"rows", first_fit}, {"padding_share", padding(first_fit)},
                                   {"cpu_s", first_fit_seconds}}},
                    {"stream", {{"cut_documents", CutByStream(corpus, sequence_length)}}}}
                   .dump()
            << "\n";
  return BenchLoader(options, corpus, split, sequence_length);
}

absl::Status Run(const Options& options) {
  LLM_ASSIGN_OR_RETURN(Corpus corpus, ReadCorpus(options));
  LLM_RETURN_IF_ERROR(MakeDirectories(options.output));
  LLM_RETURN_IF_ERROR(BenchConcat(options, corpus));
  for (int length : options.sequence_lengths) LLM_RETURN_IF_ERROR(BenchPacked(options, corpus, length));
  return absl::OkStatus();
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of writing shards, and how well documents are packed");
  app.add_option("tokenizer", options.tokenizer, "byte, or a tokenizer.json")->required();
  app.add_option("corpus", options.corpus, "JSON lines with \"text\"")->required();
  app.add_option("output", options.output, "folder for the shards")->required();
  app.add_option("--sequence-length", options.sequence_lengths, "pack for these")->capture_default_str();
  app.add_option("--window-tokens", options.window_tokens, "pack among so many")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  absl::Status status = llmctl::data::Run(options);
  if (!status.ok()) std::cerr << "llm-bench-pack: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
