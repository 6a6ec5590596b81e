#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/corpus_config.h"
#include "worker/data/command/command.h"
#include "worker/data/command/print_dataset.h"
#include "worker/data/command/progress_line.h"
#include "worker/data/pipeline/prepare_corpus.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/pipeline/write_stage.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

// What the command line says; a specification that is given says the rest.
struct PrepareFlags {
  std::string spec;
  std::vector<std::string> inputs;
  std::string output;
  std::string text_field = "text";
  std::string tokenizer = "byte";
  double validation_fraction = 0.01;
  std::string invalid_utf8 = "replace";
  int threads = 0;
  int workers = 0;
  std::string memory;
  bool force = false;
  bool keep_work = false;
  bool dry_run = false;
  PlanLimits limits;
};

// Without a specification: one source, equal documents dropped.
contract::CorpusConfig PlainCorpus(const PrepareFlags& flags) {
  contract::CorpusConfig config;
  config.name = "corpus";
  config.memory = "2G";
  config.workers = 1;
  config.output = flags.output;
  config.sources.push_back({.name = "input",
                            .paths = flags.inputs,
                            .text_field = flags.text_field,
                            .id_field = "id",
                            .format = "auto"});
  config.read = {.invalid_utf8 = flags.invalid_utf8,
                 .truncated = "refuse",
                 .document_bytes_max = "64M",
                 .giant = "split"};
  config.normalize = {.form = "NFC", .controls = "remove", .whitespace = "keep"};
  config.exact_dedup = contract::ExactDedupConfig{.units = {"document"}};
  config.tokenizer = flags.tokenizer;
  config.validation_fraction = flags.validation_fraction;
  return config;
}

absl::StatusOr<contract::CorpusConfig> ConfigOf(const PrepareFlags& flags) {
  contract::CorpusConfig config;
  if (!flags.spec.empty()) {
    LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(flags.spec));
    LLM_ASSIGN_OR_RETURN(config, contract::DecodeCorpusConfig(text));
    if (!flags.output.empty()) config.output = flags.output;
  } else if (flags.inputs.empty() || flags.output.empty()) {
    return absl::InvalidArgumentError("give a corpus.yaml (to llmctl data prepare), or --input and --output");
  } else if (!(flags.validation_fraction >= 0 && flags.validation_fraction < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--validation-fraction is ", flags.validation_fraction, ", expected 0 <= f < 1"));
  } else {
    config = PlainCorpus(flags);
  }
  if (flags.threads > 0) config.threads = flags.threads;
  if (flags.workers > 0) config.workers = flags.workers;
  if (!flags.memory.empty()) config.memory = flags.memory;
  return config;
}

void PrintCounts(const PreparedCorpus& corpus, const std::string& output, absl::Duration elapsed) {
  const json& input = corpus.report["input"];
  const json& total = corpus.report["total"];
  double megabytes = input["bytes"].get<double>() / 1e6;
  double seconds = absl::ToDoubleSeconds(elapsed);
  absl::PrintF("read %d files, %.1f MB, %d documents in %.1f s (%.1f MB/s); kept %d documents\n",
               input["files"].get<int64_t>(), megabytes, total["read"]["documents"].get<int64_t>(), seconds,
               seconds > 0 ? megabytes / seconds : 0, total["kept"]["documents"].get<int64_t>());
  if (!total["dropped"].empty()) {
    absl::PrintF("dropped (records that could not be read: %s/%s)\n", output, kRejectsName);
    for (const auto& [reason, count] : total["dropped"].items()) {
      absl::PrintF("  %-44s %12d documents %10.2f MB\n", reason, count["documents"].get<int64_t>(),
                   count["bytes"].get<double>() / 1e6);
    }
  }
  for (const auto& [name, count] : corpus.report["counters"].items()) {
    absl::PrintF("  %-44s %12d\n", name, count.get<int64_t>());
  }
  if (!input["passed_over"].empty()) {
    absl::PrintF("passed over %d files of other formats, %s the first\n", input["passed_over"].size(),
                 input["passed_over"][0].get<std::string>());
  }
}

// What would be run, without running it.
absl::Status PrintPlan(const contract::CorpusConfig& config, const PrepareOptions& options) {
  LLM_ASSIGN_OR_RETURN(ProcessLimits limits, LimitsOf(config));
  LLM_ASSIGN_OR_RETURN(CorpusPlan plan, MakeCorpusPlan(config, options.limits));
  LLM_RETURN_IF_ERROR(CleaningRules::Create(config).status());
  Workspace workspace(plan, config.output + "/.work");
  Pipeline pipeline(workspace, config.output);
  absl::PrintF("corpus %s: %d files, %.1f MB, in %d tasks; %d processes of %d threads, memory %s\n", config.name,
               plan.files.size(), plan.bytes / 1e6, plan.tasks.size(), config.workers, limits.threads, config.memory);
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    absl::PrintF("  %2d  %s\n", stage + 1, pipeline.StageName(stage));
  }
  if (config.near_dedup) absl::PrintF("%s\n", Describe(NearDedupSettings(*config.near_dedup)));
  constexpr double kBytesPerSecond = 15e6;  // docs/data/pipeline.md
  double seconds = plan.bytes / kBytesPerSecond / (config.workers * limits.threads);
  absl::PrintF("about %s, and up to %.1f MB of disk in %s while it runs\n",
               absl::FormatDuration(absl::Ceil(absl::Seconds(seconds), absl::Seconds(1))), 1.5 * plan.bytes / 1e6,
               config.output);
  if (!plan.passed_over.empty()) {
    absl::PrintF("passes over %d files of other formats, %s the first\n", plan.passed_over.size(),
                 plan.passed_over.front());
  }
  return absl::OkStatus();
}

int RunPrepare(const PrepareFlags& flags) {
  absl::StatusOr<contract::CorpusConfig> config = ConfigOf(flags);
  if (!config.ok()) return Report(config.status());
  PrepareOptions options{.force = flags.force, .keep_work = flags.keep_work, .limits = flags.limits};
  if (flags.dry_run) return Report(PrintPlan(*config, options));
  ProgressLine progress(::isatty(STDERR_FILENO) == 1);
  absl::StatusOr<PreparedCorpus> corpus = PrepareCorpus(*config, options, &progress);
  if (!corpus.ok()) return Report(corpus.status());
  absl::PrintF("dataset %s\n", config->output);
  PrintSplits(corpus->manifest);
  absl::PrintF("  digest       %s\n", corpus->digest);
  PrintCounts(*corpus, config->output, progress.Elapsed());
  if (corpus->manifest.splits[1].documents == 0 && config->validation_fraction > 0) {
    absl::PrintF("note: no document fell into the validation part; raise the validation fraction\n");
  }
  absl::PrintF("report: %s/%s\n", config->output, kReportPageName);
  if (corpus->damaged_files == 0 || config->read.truncated == "allow") return kOk;
  return Report(absl::DataLossError(absl::StrCat(
      corpus->damaged_files, " files are damaged: the dataset holds what could be read of them (", config->output, "/",
      kRejectsName, " says where; read.truncated: allow makes this no error)")));
}

}  // namespace

Verb AddPrepare(CLI::App& app) {
  auto flags = std::make_shared<PrepareFlags>();
  CLI::App* verb = app.add_subcommand("prepare", "turn text into a dataset for training");
  verb->footer("llmctl data prepare corpus.yaml [flags]\n"
               "llmctl data prepare --input=corpus.jsonl --output=my-data [flags]");
  verb->add_option("--spec", flags->spec, "resolved specification (JSON), as llmctl makes it of a corpus.yaml");
  verb->add_option("--input", flags->inputs,
                   "files, folders or globs of .txt (a file a document), .jsonl, .parquet; also .gz, .zst");
  verb->add_option("--output", flags->output, "folder for the dataset");
  verb->add_option("--text-field", flags->text_field, "field of a record with the text")->capture_default_str();
  verb->add_option("--tokenizer", flags->tokenizer, "byte, or the path of a tokenizer.json (byte-level BPE)")
      ->capture_default_str();
  verb->add_option("--validation-fraction", flags->validation_fraction, "share of documents kept for validation")
      ->capture_default_str();
  verb->add_option("--invalid-utf8", flags->invalid_utf8, "what to do with text that is not UTF-8: replace, reject")
      ->check(CLI::IsMember({"replace", "reject"}));
  verb->add_option("--threads", flags->threads, "threads of each process (default: one a core, shared)")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--workers", flags->workers, "processes (default: 1)")->check(CLI::Range(1, 256));
  verb->add_option("--memory", flags->memory, "what all processes may use at most: 2G, 512M");
  verb->add_option("--task-bytes", flags->limits.task_bytes,
                   "how much input is one task, about (default: by the size of the input, up to 256 MiB)")
      ->check(CLI::Range(int64_t{1} << 16, int64_t{1} << 40));
  verb->add_option("--segment-bytes", flags->limits.segment_bytes,
                   "how much text a task that was stopped has to read again at most, about (default: up to 64 MiB)")
      ->check(CLI::Range(int64_t{1} << 16, int64_t{1} << 40));
  verb->add_flag("--force", flags->force, "replace a dataset that is in the output folder");
  verb->add_flag("--keep-work", flags->keep_work, "keep the files between stages, for a run with other settings");
  verb->add_flag("--dry-run", flags->dry_run, "say what would be run, and run nothing");
  return {verb, [flags] { return RunPrepare(*flags); }};
}

}  // namespace llmctl::data
