// How fast are BPE's encoding and training, on the texts of a JSON-lines file that is in memory before the clock runs?
//
// CPU seconds of this one thread count, the least of several repetitions: other work on the machine does not.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/tokenizer/bpe_tokenizer.h"
#include "worker/data/tokenizer/bpe_trainer.h"

namespace llmctl::data {
namespace {

struct Options {
  std::string tokenizer;
  std::string corpus;
  std::string ids;
  std::string pattern = "gpt2";
  int vocabulary_size = 32000;
  std::string out;
  int repetitions = 3;
};

long PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

absl::StatusOr<std::string> TextOf(const std::string& line) {
  nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (value.is_object() && value.contains("text") && value["text"].is_string()) return value["text"].get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("a line without \"text\": ", line.substr(0, 80)));
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) {
    LLM_ASSIGN_OR_RETURN(std::string text, TextOf(line));
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return absl::NotFoundError(absl::StrCat(path, ": no documents"));
  return texts;
}

int64_t Bytes(const std::vector<std::string>& texts) {
  int64_t bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

// The tokens of each document that has any and its end, back to back, as wide as the vocabulary asks.
absl::Status WriteIds(const std::string& path, const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::unique_ptr<TextEncoder> encoder = tokenizer.MakeEncoder();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  size_t width = tokenizer.vocabulary_size() < 65500 ? 2 : 4;
  std::vector<int32_t> ids;
  for (const std::string& text : texts) {
    ids.clear();
    encoder->Encode(text, ids);
    if (!ids.empty()) ids.push_back(tokenizer.end_of_document());
    for (int32_t id : ids) file.write(reinterpret_cast<const char*>(&id), width);
  }
  file.close();
  return file ? absl::OkStatus() : absl::UnknownError(absl::StrCat("write ", path));
}

absl::Status BenchEncode(const Options& options) {
  absl::StatusOr<std::unique_ptr<BpeTokenizer>> tokenizer = ReadBpeTokenizer(options.tokenizer, BpeOptions());
  if (!tokenizer.ok()) return tokenizer.status();
  LLM_ASSIGN_OR_RETURN(std::vector<std::string> texts, ReadTexts(options.corpus));
  double least = 0;
  int64_t tokens = 0;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    double start = CpuSeconds();
    std::unique_ptr<TextEncoder> encoder = (*tokenizer)->MakeEncoder();
    std::vector<int32_t> ids;
    tokens = 0;
    for (const std::string& text : texts) {
      ids.clear();
      encoder->Encode(text, ids);
      tokens += static_cast<int64_t>(ids.size());
    }
    double seconds = CpuSeconds() - start;
    least = repetition == 0 ? seconds : std::min(least, seconds);
  }
  double megabytes = Bytes(texts) / 1e6;
  nlohmann::json report = {{"what", "encode"},       {"MB", megabytes},         {"tokens", tokens}, {"cpu_s", least},
                           {"MB_per_s", megabytes / least}, {"peak_rss_MB", PeakMegabytes()}};
  std::cout << report.dump() << "\n";
  return options.ids.empty() ? absl::OkStatus() : WriteIds(options.ids, **tokenizer, texts);
}

// Reads the corpus a line at a time, so that the peak of memory is that of training.
absl::Status BenchTrain(const Options& options) {
  absl::optional<Pattern> pattern = PatternNamed(options.pattern);
  if (!pattern) return absl::InvalidArgumentError(absl::StrCat("no pattern is named ", options.pattern));
  WordCounts words(*pattern, /*nfc=*/*pattern == Pattern::kQwen);
  std::ifstream file(options.corpus, std::ios::binary);
  double counting = 0;
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    LLM_ASSIGN_OR_RETURN(std::string text, TextOf(line));
    double start = CpuSeconds();
    words.AddText(text);
    counting += CpuSeconds() - start;
    bytes += static_cast<int64_t>(text.size());
  }
  double start = CpuSeconds();
  LLM_ASSIGN_OR_RETURN(TokenizerDefinition definition, TrainBpe(words, {.vocabulary_size = options.vocabulary_size}));
  double merging = CpuSeconds() - start;
  nlohmann::json report = {{"what", "train"},
                           {"MB", bytes / 1e6},
                           {"distinct_words", words.distinct()},
                           {"vocabulary", definition.vocabulary_size()},
                           {"counting_s", counting},
                           {"merging_s", merging},
                           {"cpu_s", counting + merging},
                           {"peak_rss_MB", PeakMegabytes()}};
  std::cout << report.dump() << "\n";
  return options.out.empty() ? absl::OkStatus() : WriteFileAtomically(options.out, TokenizerJsonText(definition));
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of BPE on one core");
  CLI::App* encode = app.add_subcommand("encode", "text to ids");
  encode->add_option("tokenizer", options.tokenizer, "a tokenizer.json")->required();
  encode->add_option("corpus", options.corpus, "JSON lines with \"text\"")->required();
  encode->add_option("--repetitions", options.repetitions, "the least time of so many counts");
  encode->add_option("--write-ids", options.ids, "write all ids to this file");
  CLI::App* train = app.add_subcommand("train", "a vocabulary from text");
  train->add_option("corpus", options.corpus, "JSON lines with \"text\"")->required();
  train->add_option("--pattern", options.pattern, "gpt2, llama3 or qwen");
  train->add_option("--vocabulary-size", options.vocabulary_size, "bytes and the end of document included");
  train->add_option("--out", options.out, "write the tokenizer.json here");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = *train ? llmctl::data::BenchTrain(options) : llmctl::data::BenchEncode(options);
  if (!status.ok()) std::cerr << "llm-bench-tokenize: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
