// How fast is language identification, on the texts of a JSON-lines file that is in memory before the clock runs?
//
// CPU seconds of this one thread count, the least of several repetitions: other work on the machine does not. CLD2 is
// measured beside the library alone on the same bytes, by turns. --guesses writes a line for each document,
// {"n":0,"label":"en","score":0.98}, to be compared with another tool's (language_peer.py).

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "bench/pipeline/corpus_texts.h"
#include "common/base/status.h"
#include "worker/data/language/language_detector.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string corpus;
  std::string guesses;
  LanguageSettings settings;
  int repetitions = 3;
  int64_t megabytes = 0;
};

// Asks CLD2 as Cld2Detector does, and nothing else. Returns what the compiler must not leave out.
int AskLibrary(const std::vector<std::string>& texts, const LanguageSettings& settings) {
  const CLD2::CLDHints no_hints = {"", "", CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  CLD2::Language languages[3];
  int percents[3];
  double normal_scores[3];
  int letter_bytes = 0;
  bool is_reliable = false;
  int sum = 0;
  const size_t bytes_max = settings.whole_text ? kWholeTextBytesMax : kSampleBytes;
  for (const std::string& text : texts) {
    int bytes = static_cast<int>(std::min(text.size(), bytes_max));
    while (bytes < static_cast<int>(text.size()) && (text[bytes] & 0xc0) == 0x80) --bytes;
    CLD2::ExtDetectLanguageSummary(text.data(), bytes, /*is_plain_text=*/true, &no_hints, /*flags=*/0, languages,
                                   percents, normal_scores, nullptr, &letter_bytes, &is_reliable);
    sum += percents[0];
  }
  return sum;
}

struct Detected {
  int64_t kept = 0;
  std::map<std::string, int64_t> labels;
};

Detected AskOurs(const std::vector<std::string>& texts, const LanguageDetector& detector, const Options& options) {
  Detected out;
  std::map<absl::string_view, int64_t> labels;
  std::unique_ptr<LanguageScratch> scratch = detector.MakeScratch();
  for (const std::string& text : texts) {
    LanguageGuess guess = detector.Detect(text, *scratch);
    out.kept += Judge(guess, options.settings).keep();
    ++labels[guess.label];
  }
  for (const auto& [label, count] : labels) out.labels[std::string(label)] = count;
  return out;
}

void WriteGuesses(const std::vector<std::string>& texts, const LanguageDetector& detector, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  std::unique_ptr<LanguageScratch> scratch = detector.MakeScratch();
  for (size_t n = 0; n < texts.size(); ++n) {
    LanguageGuess guess = detector.Detect(texts[n], *scratch);
    file << Json({{"n", n}, {"label", std::string(guess.label)}, {"score", guess.score}}).dump() << "\n";
  }
}

double Seconds(const std::function<void()>& work) {
  double start = CpuSeconds();
  work();
  return CpuSeconds() - start;
}

absl::Status Run(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::vector<std::string> texts, ReadTexts(options.corpus, options.megabytes));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<const LanguageDetector> detector, LanguageDetector::Create(options.settings));
  if (!options.guesses.empty()) WriteGuesses(texts, *detector, options.guesses);
  double megabytes = 0;
  for (const std::string& text : texts) megabytes += text.size() / 1e6;
  Detected detected;
  double ours = 0;
  double alone = 0;
  int checksum = 0;
  for (int i = 0; i < options.repetitions; ++i) {
    double seconds = Seconds([&] { detected = AskOurs(texts, *detector, options); });
    ours = i == 0 ? seconds : std::min(ours, seconds);
    if (options.settings.detector != LanguageDetectorKind::kCld2) continue;
    seconds = Seconds([&] { checksum += AskLibrary(texts, options.settings); });
    alone = i == 0 ? seconds : std::min(alone, seconds);
  }
  Json out = {{"bench", "language"},      {"detector", detector->Identity()}, {"documents", texts.size()},
              {"MB", megabytes},          {"cpu_s", ours},                    {"MB_per_s", megabytes / ours},
              {"labels", detected.labels}, {"kept", detected.kept}};
  if (alone > 0 && checksum >= 0) out["library_alone_MB_per_s"] = megabytes / alone;
  std::cout << out.dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of language identification, in MB of text per CPU second of one thread");
  app.add_option("corpus", options.corpus, "JSON lines with a \"text\"")->required();
  app.add_option("--model", options.settings.model_file, "fastText with this model instead of CLD2");
  app.add_flag("--whole-text", options.settings.whole_text, "look at all of a document");
  app.add_option("--guesses", options.guesses, "write each document's label and score here");
  app.add_option("--repetitions", options.repetitions, "the fastest counts");
  app.add_option("--megabytes", options.megabytes, "only so much of the corpus");
  CLI11_PARSE(app, argc, argv);
  if (!options.settings.model_file.empty()) options.settings.detector = llmctl::data::LanguageDetectorKind::kFastText;
  absl::Status status = llmctl::data::Run(options);
  if (!status.ok()) std::cerr << "llm-bench-language: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
