#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/corpus_config.h"
#include "worker/data/command/audited_dataset.h"
#include "worker/data/command/command.h"
#include "worker/data/filters/judge.h"
#include "worker/data/pipeline/measurement_record.h"
#include "worker/data/pipeline/settings.h"

namespace llmctl::data {
namespace {

struct RethresholdFlags {
  std::string dataset;
  std::string spec;
  bool list = false;
};

std::string ReasonOf(const Verdict& verdict) {
  return verdict.keep() ? "kept" : absl::StrCat(FilterName(verdict.rule), ".", ReasonName(verdict.rule));
}

struct Change {
  int64_t before = 0;
  int64_t after = 0;
};

// Settings with which what was measured then can be judged now.
absl::StatusOr<FilterSettings> NewSettings(const AuditedDataset& dataset, const std::string& spec) {
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(spec));
  LLM_ASSIGN_OR_RETURN(contract::CorpusConfig config, contract::DecodeCorpusConfig(text));
  if (!config.quality) return absl::InvalidArgumentError("the specification has no quality section to judge by");
  FilterSettings settings = QualitySettings(*config.quality);
  LLM_RETURN_IF_ERROR(settings.Validate());
  const auto& old = dataset.plan().config.quality;
  if (!old || !old->keep_measurements) {
    return absl::FailedPreconditionError(
        "the dataset was made without quality.keepMeasurements: true, so there are no numbers to judge again");
  }
  if (MeasurementOf(settings) != MeasurementOf(QualitySettings(*old))) {
    return absl::InvalidArgumentError(
        "the specification changes what is measured (stop words, rules of C4 that change the text, parity), not only "
        "thresholds: prepare the corpus again");
  }
  return settings;
}

absl::Status Rethreshold(const RethresholdFlags& flags) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<AuditedDataset> dataset, AuditedDataset::Open(flags.dataset));
  LLM_ASSIGN_OR_RETURN(FilterSettings settings, NewSettings(*dataset, flags.spec));
  FilterSettings old = QualitySettings(*dataset->plan().config.quality);
  const Audit& audit = dataset->audit();
  std::map<std::string, Change> changes;
  int64_t documents = 0;
  for (size_t segment = 0; segment < audit.segments().size(); ++segment) {
    LLM_RETURN_IF_ERROR(audit.ForEach(segment, [&](const VerdictRecord& verdict, uint64_t) -> absl::StatusOr<bool> {
      if (verdict.measurements.empty()) return true;  // dropped before it came to the filters
      LLM_ASSIGN_OR_RETURN(FilterStats stats, DecodeMeasurements(verdict.measurements));
      LLM_ASSIGN_OR_RETURN(Verdict before, Judge(stats, old));
      LLM_ASSIGN_OR_RETURN(Verdict after, Judge(stats, settings));
      ++documents;
      ++changes[ReasonOf(before)].before;
      ++changes[ReasonOf(after)].after;
      if (flags.list && before.keep() != after.keep()) {
        absl::PrintF("%s %s %s %g\n", after.keep() ? "+" : "-", audit.PlaceName(segment, verdict.place),
                     ReasonOf(after.keep() ? before : after), after.keep() ? before.measured : after.measured);
      }
      return true;
    }));
  }
  absl::PrintF("%d documents by the filters alone\n  %-48s %12s %12s %12s\n", documents, "", "then", "now", "change");
  for (const auto& [reason, change] : changes) {
    absl::PrintF("  %-48s %12d %12d %+12d\n", reason, change.before, change.after, change.after - change.before);
  }
  return absl::OkStatus();
}

}  // namespace

Verb AddRethreshold(CLI::App& app) {
  auto flags = std::make_shared<RethresholdFlags>();
  CLI::App* verb = app.add_subcommand("rethreshold", "try other thresholds on the numbers of an earlier run");
  verb->footer("llmctl data rethreshold DATASET corpus.yaml [--list]");
  verb->add_option("dataset", flags->dataset, "folder of a dataset made with quality.keepMeasurements")->required();
  verb->add_option("--spec", flags->spec, "resolved specification (JSON), as llmctl makes it of a corpus.yaml")
      ->required();
  verb->add_flag("--list", flags->list, "list the documents of which the verdict changes");
  return {verb, [flags] { return Report(Rethreshold(*flags)); }};
}

}  // namespace llmctl::data
