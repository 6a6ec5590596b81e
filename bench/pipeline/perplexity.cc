// How fast is text scored by an n-gram model, how long does a model take to load, how long to train?
//
// CPU seconds of this one thread count; texts are in memory before the clock runs. --scores writes a line for each
// document's lines: {"n":0,"line":0,"log10":-12.3,"length":7,"unknown":1}, to be compared with another tool's
// (perplexity_peer.py).
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "common/base/status.h"
#include "worker/data/perplexity/line_normalizer.h"
#include "worker/data/perplexity/ngram_trainer.h"
#include "worker/data/perplexity/perplexity_filter.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string corpus;
  std::string model;
  std::string train;
  std::string scores;
  std::string normalized;
  std::string tokenizer;
  NgramTrainSettings training;
  uint64_t memory_megabytes = 1024;
  bool raw = false;
  int repetitions = 3;
  int64_t megabytes = 0;
};

int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

PerplexitySettings SettingsOf(const Options& options) {
  PerplexitySettings settings;
  settings.text.normalize = !options.raw;
  settings.text.unit = options.tokenizer.empty() ? ModelUnit::kWords : ModelUnit::kPieces;
  settings.tokenizer = options.tokenizer;
  settings.models[""] = options.model;
  return settings;
}

absl::Status Train(const Options& options, const std::vector<std::string>& texts, Json& out) {
  std::unique_ptr<BpeTokenizer> tokenizer;
  PerplexitySettings settings = SettingsOf(options);
  if (!options.tokenizer.empty()) {
    LLM_ASSIGN_OR_RETURN(tokenizer, ReadBpeTokenizer(options.tokenizer, {.added_tokens = AddedTokensInText::kPlain}));
  }
  LocalSpillFiles files;
  NgramTrainJob job = {.path = options.train, .folder = options.train + ".work", .training = options.training,
                       .text = settings.text, .tokenizer = tokenizer.get()};
  job.training.memory_bytes = options.memory_megabytes << 20;
  size_t at = 0;
  auto next = [&](std::string& document) -> absl::StatusOr<bool> {
    if (at == texts.size()) return false;
    document = texts[at++];
    return true;
  };
  const double start = CpuSeconds();
  LLM_ASSIGN_OR_RETURN(NgramTrainReport report, TrainNgramModel(job, files, next));
  out["train_cpu_s"] = CpuSeconds() - start;
  out["train_peak_MB"] = PeakBytes() / 1e6;
  out["words"] = report.words;
  out["vocabulary"] = report.vocabulary;
  for (const NgramOrderReport& order : report.orders) {
    out["orders"].push_back({{"kept", order.kept}, {"distinct", order.distinct}, {"discounts", order.discounts}});
  }
  for (const std::string& warning : report.warnings) std::cerr << warning << "\n";
  return absl::OkStatus();
}

void WriteScores(const PerplexityModels& models, const std::vector<std::string>& texts, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  ModelTextReader reader(models.text());
  NgramScorer scorer(*models.ModelFor(""));
  std::vector<absl::string_view> words;
  for (size_t n = 0; n < texts.size(); ++n) {
    reader.Start(texts[n]);
    for (int64_t line = 0; reader.NextLine(words); ++line) {
      scorer.Clear();
      scorer.BeginLine();
      for (absl::string_view word : words) scorer.AddWord(word);
      scorer.EndLine();
      TextScore score = scorer.Score();
      file << Json({{"n", n}, {"line", line}, {"log10", score.log_probability}, {"length", score.length},
                    {"unknown", score.unknown}}).dump() << "\n";
    }
  }
}

void WriteNormalized(const std::vector<std::string>& texts, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  std::string line;
  for (const std::string& text : texts) {
    NormalizeLine(text, line);
    file << line << "\n";
  }
}

absl::Status Score(const Options& options, const std::vector<std::string>& texts, int64_t bytes, Json& out) {
  const double start = CpuSeconds();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<PerplexityModels> models, PerplexityModels::Load(SettingsOf(options)));
  out["load_cpu_s"] = CpuSeconds() - start;
  out["model_file_MB"] = static_cast<double>(std::filesystem::file_size(options.model)) / 1e6;
  out["model_memory_MB"] = static_cast<double>(models->memory_bytes()) / 1e6;
  if (!options.scores.empty()) WriteScores(*models, texts, options.scores);
  PerplexityReader reader(*models);
  double best = 0;
  TextScore total;
  for (int i = 0; i < options.repetitions; ++i) {
    total = {};
    const double before = CpuSeconds();
    for (const std::string& text : texts) {
      TextScore score = reader.Measure(text, "").score;
      total.log_probability += score.log_probability;
      total.length += score.length;
      total.unknown += score.unknown;
    }
    const double seconds = CpuSeconds() - before;
    if (i == 0 || seconds < best) best = seconds;
  }
  out["cpu_s"] = best;
  out["MB_per_s"] = bytes / 1e6 / best;
  out["perplexity"] = total.Perplexity();
  out["length"] = total.length;
  out["unknown"] = total.unknown;
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::vector<std::string> texts, ReadTexts(options.corpus, options.megabytes));
  int64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  Json out = {{"bench", "perplexity"}, {"documents", texts.size()}, {"MB", bytes / 1e6}};
  if (!options.normalized.empty()) WriteNormalized(texts, options.normalized);
  if (!options.train.empty()) LLM_RETURN_IF_ERROR(Train(options, texts, out));
  if (!options.model.empty()) LLM_RETURN_IF_ERROR(Score(options, texts, bytes, out));
  std::cout << out.dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of n-gram models, in MB of text per CPU second of one thread");
  app.add_option("corpus", options.corpus, "JSON lines with a \"text\"")->required();
  app.add_option("--model", options.model, "score with this ARPA file");
  app.add_option("--train", options.train, "train a model on the corpus and write it here");
  app.add_option("--order", options.training.order, "of the model that is trained");
  app.add_option("--prune", options.training.prune, "thresholds, one for each order");
  app.add_option("--memory-mb", options.memory_megabytes, "for training");
  app.add_option("--tokenizer", options.tokenizer, "a tokenizer.json: its pieces are the words");
  app.add_flag("--raw", options.raw, "lines as they are, not as CCNet normalises them");
  app.add_option("--scores", options.scores, "write each line's score here");
  app.add_option("--normalized", options.normalized, "write each document here, normalised as one line");
  app.add_option("--repetitions", options.repetitions, "the fastest counts");
  app.add_option("--megabytes", options.megabytes, "only so much of the corpus");
  CLI11_PARSE(app, argc, argv);
  absl::Status status = llmctl::data::Run(options);
  if (status.ok()) return 0;
  std::cerr << "llm-bench-perplexity: " << status.message() << "\n";
  return 1;
}
