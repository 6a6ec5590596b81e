// How fast is personal data found and replaced, on the texts of a JSON-lines file that is in memory before the clock
// runs?
//
// CPU seconds of this one thread count, the least of several repetitions: other work on the machine does not. --found
// writes a line for each span: {"n":0,"type":"email","begin":12,"end":27,"text":"..."}; --cleaned a text a line, to be
// compared with another tool's (pii_peer.py).

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
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string corpus;
  std::string found;
  std::string cleaned;
  std::string only;
  bool datatrove = false;
  int repetitions = 3;
  int64_t megabytes = 0;
};

absl::StatusOr<PiiSettings> SettingsOf(const Options& options) {
  PiiSettings settings;
  settings.mode = options.datatrove ? PiiMode::kDatatrove : PiiMode::kDefault;
  if (options.only.empty()) return settings;
  std::optional<PiiType> only = ParsePiiType(options.only);
  if (!only.has_value()) return absl::InvalidArgumentError(absl::StrCat("--only ", options.only, ": no such type"));
  for (PiiRule& rule : settings.rules) rule.action = PiiAction::kOff;
  settings.Of(*only).action = PiiAction::kReplace;
  return settings;
}

void WriteFound(const std::vector<std::string>& texts, const std::string& path, PiiCleaner& cleaner) {
  std::ofstream file(path);
  for (size_t n = 0; n < texts.size(); ++n) {
    for (const PiiSpan& span : cleaner.Find(texts[n])) {
      file << Json{{"n", n},
                   {"type", PiiTypeName(span.type).data()},
                   {"begin", span.begin},
                   {"end", span.end},
                   {"text", texts[n].substr(span.begin, span.end - span.begin)}}
                  .dump()
           << "\n";
    }
  }
}

void WriteCleaned(const std::vector<std::string>& texts, const std::string& path, PiiCleaner& cleaner) {
  std::ofstream file(path);
  PiiCounters counters;
  for (std::string text : texts) {
    cleaner.Apply(text, counters);
    file << Json(text).dump() << "\n";
  }
}

int Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  return 1;
}

int Run(const Options& options) {
  absl::StatusOr<std::vector<std::string>> texts = ReadTexts(options.corpus, options.megabytes);
  if (!texts.ok()) return Fail(texts.status());
  absl::StatusOr<PiiSettings> settings = SettingsOf(options);
  if (!settings.ok()) return Fail(settings.status());
  const double start = CpuSeconds();
  absl::StatusOr<std::unique_ptr<PiiRules>> rules = PiiRules::Create(*settings);
  if (!rules.ok()) return Fail(rules.status());
  PiiCleaner cleaner(**rules);
  const double compile_seconds = CpuSeconds() - start;
  if (!options.found.empty()) WriteFound(*texts, options.found, cleaner);
  if (!options.cleaned.empty()) WriteCleaned(*texts, options.cleaned, cleaner);

  int64_t bytes = 0;
  for (const std::string& text : *texts) bytes += text.size();
  PiiCounters counters;
  double best = 0;
  for (int i = 0; i < options.repetitions; ++i) {
    std::vector<std::string> copy = *texts;
    counters = {};
    const double begin = CpuSeconds();
    for (std::string& text : copy) cleaner.Apply(text, counters);
    const double seconds = CpuSeconds() - begin;
    if (i == 0 || seconds < best) best = seconds;
  }
  Json found;
  for (int i = 0; i < kPiiTypes; ++i) found[std::string(PiiTypeName(static_cast<PiiType>(i)))] = counters.found[i];
  Json out = {{"bench", "pii"},
              {"documents", texts->size()},
              {"MB", bytes / 1e6},
              {"cpu_s", best},
              {"compile_s", compile_seconds},
              {"changed", counters.documents_changed},
              {"found", found},
              {"MB_per_s", best > 0 ? bytes / 1e6 / best : 0}};
  std::cout << out.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of finding and replacing personal data, in MB of text per CPU second of one thread");
  app.add_option("corpus", options.corpus, "JSON lines with a \"text\"")->required();
  app.add_flag("--datatrove", options.datatrove, "datatrove's two rules instead of all of ours");
  app.add_option("--only", options.only, "one type: email, phone, ipv4, ...");
  app.add_option("--found", options.found, "write what was found here");
  app.add_option("--cleaned", options.cleaned, "write the texts as they are afterwards here");
  app.add_option("--repetitions", options.repetitions, "the fastest counts");
  app.add_option("--megabytes", options.megabytes, "only so much of the corpus");
  CLI11_PARSE(app, argc, argv);
  return llmctl::data::Run(options);
}
