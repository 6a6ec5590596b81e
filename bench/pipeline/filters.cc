// How fast are the quality filters, on the texts of a JSON-lines file that is in memory before the clock runs?
//
// CPU seconds of this one thread count, the least of several repetitions: other work on the machine does not.
// --verdicts writes a line for each document: {"n":0,"filter":"c4","reason":"curly_bracket"}, to be compared with
// another tool's (filters_peer.py).

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "worker/data/filters/document_filter.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string corpus;
  std::string verdicts;
  bool datatrove = false;
  bool words = false;
  bool numbers = false;
  std::string alone;
  int repetitions = 3;
  int64_t megabytes = 0;
};

FilterSettings SettingsOf(const Options& options) {
  FilterSettings settings = FilterSettings::FineWeb();
  settings.mode = options.datatrove ? FilterMode::kDatatrove : FilterMode::kDefault;
  if (options.alone.empty()) return settings;
  if (options.alone != "gopher_repetition") settings.gopher_repetition.reset();
  if (options.alone != "gopher_quality") settings.gopher_quality.reset();
  if (options.alone != "c4") settings.c4.reset();
  if (options.alone != "fineweb") settings.fineweb.reset();
  return settings;
}

// What is done to a document once.
using Work = std::function<Verdict(std::string& text)>;

struct Measured {
  double seconds = 0;
  int64_t kept = 0;
  std::map<std::string, int64_t> reasons;
};

Measured RunOnce(const std::vector<std::string>& texts, const Work& work) {
  Measured out;
  std::string text;
  double start = CpuSeconds();
  for (const std::string& original : texts) {
    text = original;
    Verdict verdict = work(text);
    out.kept += verdict.keep();
    if (!verdict.keep()) ++out.reasons[absl::StrCat(FilterName(verdict.rule), ":", ReasonName(verdict.rule))];
  }
  out.seconds = CpuSeconds() - start;
  return out;
}

void WriteVerdicts(const std::vector<std::string>& texts, const std::string& path, const Work& work) {
  std::ofstream file(path, std::ios::binary);
  for (size_t n = 0; n < texts.size(); ++n) {
    std::string text = texts[n];
    Verdict verdict = work(text);
    Json row = {{"n", n}, {"filter", FilterName(verdict.rule)}, {"reason", ReasonName(verdict.rule)}};
    if (verdict.keep()) row["after"] = text;
    if (!verdict.keep()) row["measured"] = verdict.measured;
    file << row.dump() << "\n";
  }
}

void WriteWords(const std::vector<std::string>& texts, const std::string& path, WordReader& reader) {
  std::ofstream file(path, std::ios::binary);
  std::vector<uint32_t> ids;
  for (size_t n = 0; n < texts.size(); ++n) {
    reader.Begin();
    reader.ReadWords(texts[n], ids);
    Json words = Json::array();
    for (uint32_t id : ids) words.push_back(std::string(reader.word(id).text));
    file << Json({{"n", n}, {"words", words}}).dump() << "\n";
  }
}

int Run(const Options& options) {
  absl::StatusOr<std::vector<std::string>> texts = ReadTexts(options.corpus, options.megabytes);
  if (!texts.ok()) {
    std::cerr << "llm-bench-filters: " << texts.status().message() << "\n";
    return 1;
  }
  FilterRules rules(SettingsOf(options));
  DocumentFilter filter(rules);
  WordReader reader(rules.splitter(), {});
  std::vector<uint32_t> ids;
  std::string rewritten;
  Work work = [&](std::string& text) { return filter.Run(text, "en"); };
  if (options.words) {
    work = [&](std::string& text) {
      reader.Begin();
      reader.ReadWords(text, ids);
      return Verdict();
    };
  } else if (options.numbers) {
    work = [&](std::string& text) {
      return Judge(filter.Measure(text, "en", rewritten), rules.settings()).value_or(Verdict());
    };
  }
  if (!options.verdicts.empty()) {
    if (options.words) {
      WriteWords(*texts, options.verdicts, reader);
    } else {
      WriteVerdicts(*texts, options.verdicts, work);
    }
  }
  int64_t bytes = 0;
  for (const std::string& text : *texts) bytes += text.size();
  Measured best;
  for (int i = 0; i < options.repetitions; ++i) {
    Measured measured = RunOnce(*texts, work);
    if (i == 0 || measured.seconds < best.seconds) best = measured;
  }
  Json out = {{"bench", "filters"},       {"documents", texts->size()}, {"MB", bytes / 1e6},
              {"cpu_s", best.seconds},    {"kept", best.kept},          {"reasons", best.reasons},
              {"MB_per_s", best.seconds > 0 ? bytes / 1e6 / best.seconds : 0}};
  std::cout << out.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of the quality filters, in MB of text per CPU second of one thread");
  app.add_option("corpus", options.corpus, "JSON lines with a \"text\"")->required();
  app.add_flag("--datatrove", options.datatrove, "datatrove's order and n-grams instead of the default mode");
  app.add_flag("--words", options.words, "only split into words");
  app.add_flag("--numbers", options.numbers, "measure every number of every document");
  app.add_option("--alone", options.alone, "one filter: gopher_repetition, gopher_quality, c4, fineweb");
  app.add_option("--verdicts", options.verdicts, "write each document's verdict, or words, here");
  app.add_option("--repetitions", options.repetitions, "the fastest counts");
  app.add_option("--megabytes", options.megabytes, "only so much of the corpus");
  CLI11_PARSE(app, argc, argv);
  return llmctl::data::Run(options);
}
