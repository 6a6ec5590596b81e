// How fast is deduplication, all stages, on the texts of a JSON-lines file that is in memory before the clock runs?
//
// CPU seconds of this one thread count (user and system), the least of several repetitions: other work on the machine
// does not. --clusters writes a line for each cluster, {"kept":ID,"ids":[ID,...]}, for dedup_peer.py --recall.
#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/dedup/exact_dedup.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/dedup/spacy_words.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string corpus;
  std::string clusters;
  std::string folder = std::filesystem::temp_directory_path().string();
  NearSettings near;
  double jaccard_min = 0;
  std::string exact;
  std::string signatures;
  bool datatrove = false;
  uint64_t memory_megabytes = 256;
  uint64_t parts = 1;
  int repetitions = 3;
};

struct Corpus {
  std::vector<std::string> ids;
  std::vector<std::string> texts;
  uint64_t bytes = 0;
};

// A fresh folder that is gone afterwards.
class Folder {
 public:
  explicit Folder(const std::string& parent) : path_(parent + "/llm-bench-dedup-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) path_ = parent + "/llm-bench-dedup";
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using StageSeconds = std::map<std::string, double>;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

long PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

absl::StatusOr<Corpus> ReadCorpus(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Corpus corpus;
  for (std::string line; std::getline(file, line);) {
    Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object() || !value.contains("text") || !value["text"].is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("read ", path, ": line ", corpus.texts.size() + 1,
                                                     " is no object with a string \"text\""));
    }
    corpus.texts.push_back(value["text"].get<std::string>());
    corpus.ids.push_back(value.value("id", absl::StrCat(corpus.ids.size())));
    corpus.bytes += corpus.texts.back().size();
  }
  if (corpus.texts.empty()) return absl::NotFoundError(absl::StrCat("read ", path, ": no document in it"));
  return corpus;
}

template <typename Plan>
void NameParts(const Options& options, Plan& plan) {
  for (uint64_t part = 0; part < options.parts; ++part) plan.part_digests.push_back(absl::StrCat("part ", part));
}

template <typename Task>
absl::Status Feed(absl::StatusOr<std::unique_ptr<Task>> task, const Options& options, const Corpus& corpus,
                  uint64_t part) {
  LLM_RETURN_IF_ERROR(task.status());
  uint64_t count = corpus.texts.size();
  for (uint64_t i = part * count / options.parts; i < (part + 1) * count / options.parts; ++i) {
    LLM_RETURN_IF_ERROR((*task)->Add(corpus.texts[i]));
  }
  return (*task)->Finish();
}

absl::Status Timed(StageSeconds& seconds, const std::string& stage, const std::function<absl::Status()>& work) {
  double start = CpuSeconds();
  absl::Status status = work();
  seconds[stage] += CpuSeconds() - start;
  return status;
}

void WriteClusters(const Corpus& corpus, const std::vector<Duplicate>& duplicates, const std::string& path) {
  std::map<uint64_t, Json> clusters;
  for (const Duplicate& duplicate : duplicates) {
    Json& ids = clusters.try_emplace(duplicate.kept, Json::array({corpus.ids[duplicate.kept]})).first->second;
    ids.push_back(corpus.ids[duplicate.document]);
  }
  std::ofstream file(path, std::ios::binary);
  for (const auto& [kept, ids] : clusters) file << Json({{"kept", corpus.ids[kept]}, {"ids", ids}}).dump() << "\n";
}

void WriteSignatures(const Corpus& corpus, const Signer& signer, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  Signature signature;
  for (const std::string& text : corpus.texts) {
    signer.Sign(text, signature);
    signature.least.resize(signature.full ? signer.settings().bands * signer.settings().rows : 0);
    file << Json(signature.least).dump() << "\n";
  }
}

absl::StatusOr<Json> RunNear(const Options& options, const Corpus& corpus, StageSeconds& seconds) {
  Folder folder(options.folder);
  LocalSpillFiles files;
  TaskResources resources{&files, options.memory_megabytes << 20};
  NearPlan plan{options.near, folder.path(), {}};
  NameParts(options, plan);
  WordSplitter splitter;
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Signer> signer, Signer::Make(options.near, SpacyWords(splitter)));
  if (!options.signatures.empty()) WriteSignatures(corpus, *signer, options.signatures);
  LLM_RETURN_IF_ERROR(Timed(seconds, "signatures", [&] {
    for (uint64_t part = 0; part < options.parts; ++part) {
      LLM_RETURN_IF_ERROR(Feed(SignatureTask::Open(plan, part, *signer, resources), options, corpus, part));
    }
    return absl::OkStatus();
  }));
  LLM_RETURN_IF_ERROR(Timed(seconds, "bands", [&] {
    for (int band = 0; band < BandTasks(options.near); ++band) LLM_RETURN_IF_ERROR(RunBandTask(plan, band, resources));
    return absl::OkStatus();
  }));
  LLM_RETURN_IF_ERROR(Timed(seconds, "clusters", [&] { return RunClusterTask(plan, resources).status(); }));
  std::vector<Duplicate> duplicates;
  NearSummary summary;
  LLM_RETURN_IF_ERROR(Timed(seconds, "verdicts", [&]() -> absl::Status {
    LLM_ASSIGN_OR_RETURN(DuplicateReader reader, DuplicateReader::Open(plan, files));
    summary = reader.summary();
    for (uint64_t i = 0; i < corpus.texts.size(); ++i) {
      LLM_ASSIGN_OR_RETURN(std::optional<Duplicate> found, reader.Find(i));
      if (found) duplicates.push_back(*found);
    }
    return absl::OkStatus();
  }));
  if (!options.clusters.empty()) WriteClusters(corpus, duplicates, options.clusters);
  return Json{{"documents", summary.documents},   {"short", summary.short_documents}, {"clusters", summary.clusters},
              {"clustered", summary.clustered},   {"removed", summary.removed},       {"largest", summary.largest},
              {"candidates", summary.candidates}, {"pairs", summary.pairs}};
}

absl::StatusOr<Json> RunExact(const Options& options, const Corpus& corpus, StageSeconds& seconds) {
  Folder folder(options.folder);
  LocalSpillFiles files;
  TaskResources resources{&files, options.memory_megabytes << 20};
  ExactPlan plan{{}, folder.path(), {}};
  for (TextUnit unit : {TextUnit::kDocument, TextUnit::kParagraph, TextUnit::kLine}) {
    if (options.exact == TextUnitName(unit)) plan.settings.unit = unit;
  }
  NameParts(options, plan);
  LLM_RETURN_IF_ERROR(Timed(seconds, "keys", [&] {
    for (uint64_t part = 0; part < options.parts; ++part) {
      LLM_RETURN_IF_ERROR(Feed(KeyTask::Open(plan, part, resources), options, corpus, part));
    }
    return absl::OkStatus();
  }));
  LLM_RETURN_IF_ERROR(Timed(seconds, "ranges", [&] {
    for (int range = 0; range < kRangeTasks; ++range) LLM_RETURN_IF_ERROR(RunRangeTask(plan, range, resources));
    return absl::OkStatus();
  }));
  ExactSummary summary;
  LLM_RETURN_IF_ERROR(Timed(seconds, "repeats", [&]() -> absl::Status {
    LLM_ASSIGN_OR_RETURN(summary, RunRepeatTask(plan, resources));
    return absl::OkStatus();
  }));
  return Json{{"documents", summary.documents}, {"units", summary.units}, {"repeats", summary.repeats}};
}

absl::Status Run(const Options& options) {
  LLM_ASSIGN_OR_RETURN(Corpus corpus, ReadCorpus(options.corpus));
  if (options.exact.empty()) std::printf("%s\n", Describe(options.near).c_str());
  double best = 0;
  StageSeconds stages;
  Json found;
  for (int i = 0; i < options.repetitions; ++i) {
    StageSeconds seconds;
    LLM_ASSIGN_OR_RETURN(found, options.exact.empty() ? RunNear(options, corpus, seconds)
                                                      : RunExact(options, corpus, seconds));
    double total = 0;
    for (const auto& [stage, part] : seconds) total += part;
    if (i == 0 || total < best) {
      best = total;
      stages = seconds;
    }
  }
  Json row = {{"bench", options.exact.empty() ? "near dedup" : "exact dedup"},
              {"MB", corpus.bytes / 1e6},
              {"cpu_s", best},
              {"MB_per_s", corpus.bytes / 1e6 / best},
              {"stages_s", stages},
              {"peak_rss_MB", PeakMegabytes()},
              {"found", found}};
  std::printf("%s\n", row.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app{"CPU seconds of deduplication over the texts of a JSON-lines file; the last line is JSON."};
  app.add_option("corpus", options.corpus, "a file of lines {\"id\": ..., \"text\": ...}")->required();
  app.add_option("--clusters", options.clusters, "write a line per cluster to this file");
  app.add_option("--signatures", options.signatures, "write the signature of each document to this file");
  app.add_flag("--datatrove", options.datatrove, "signatures equal to datatrove's");
  app.add_option("--folder", options.folder, "where intermediate files lie while it runs");
  app.add_option("--bands", options.near.bands, "bands of the signature");
  app.add_option("--rows", options.near.rows, "rows of a band");
  app.add_option("--jaccard-min", options.jaccard_min, "drop candidate pairs below it");
  app.add_option("--exact", options.exact, "exact deduplication of document, paragraph or line instead")
      ->check(CLI::IsMember({"document", "paragraph", "line"}));
  app.add_option("--memory", options.memory_megabytes, "MiB of records held at once");
  app.add_option("--parts", options.parts, "cut the input into so many parts");
  app.add_option("--repetitions", options.repetitions, "the least of so many counts");
  CLI11_PARSE(app, argc, argv);
  if (options.jaccard_min > 0) options.near.jaccard_min = options.jaccard_min;
  if (options.datatrove) options.near.recipe = llmctl::data::ShingleRecipe::kDatatrove;
  absl::Status status = llmctl::data::Run(options);
  if (!status.ok()) std::cerr << "llm-bench-dedup: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
