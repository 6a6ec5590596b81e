// llm-data inspect: what is in a dataset.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/command/command.h"
#include "worker/data/command/print_dataset.h"
#include "worker/data/inspect/dataset_view.h"

namespace llmctl::data {
namespace {

struct Options {
  std::string directory;
  int tokens = 400;
  int64_t document = -1;
  std::string split = "train";
};

void PrintLengths(const std::string& split, const char* what, const LengthCounts& lengths) {
  if (lengths.count() == 0) return;
  absl::PrintF("lengths of the %s of %s in tokens: %d to %d; half are at most %d, nine in ten at most %d, all but one "
               "in a hundred at most %d\n",
               what, split, lengths.least(), lengths.largest(), lengths.Quantile(0.5), lengths.Quantile(0.9),
               lengths.Quantile(0.99));
  int64_t most = 0;
  for (const LengthCounts::Bar& bar : lengths.Histogram()) most = std::max(most, bar.count);
  for (const LengthCounts::Bar& bar : lengths.Histogram()) {
    absl::PrintF("  %10d - %10d %12d %s %14d tokens %s\n", bar.begin, bar.end - 1, bar.count, what, bar.tokens,
                 std::string((40 * bar.count + most - 1) / most, '#'));
  }
}

// The start of the training part as text, so that a person can see what a model would.
absl::Status PrintStart(const DatasetView& view, int tokens) {
  LLM_ASSIGN_OR_RETURN(const ShardReader* reader, view.Split("train"));
  std::vector<int32_t> start(std::min<int64_t>(tokens, reader->tokens()));
  reader->Copy(0, absl::MakeSpan(start));
  absl::PrintF("first %d tokens of train\n", start.size());
  std::cout << view.tokenizer().Decode(start) << "\n";
  return absl::OkStatus();
}

absl::Status Inspect(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetView> view, DatasetView::Open(options.directory));
  if (options.document >= 0) {
    LLM_ASSIGN_OR_RETURN(std::string text, view->Text(options.split, options.document));
    std::cout << text << "\n";
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(std::string digest, ManifestDigest(options.directory));
  absl::PrintF("dataset %s\n", options.directory);
  PrintSplits(view->manifest());
  absl::PrintF("  digest       %s\n  source       %s\n", digest, view->manifest().source_json);
  for (const SplitInfo& split : view->manifest().splits) {
    LLM_ASSIGN_OR_RETURN(LengthCounts lengths, view->Lengths(split.name));
    PrintLengths(split.name, split.packed.has_value() ? "pieces" : "documents", lengths);
  }
  return PrintStart(*view, options.tokens);
}

}  // namespace

Verb AddInspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("inspect", "show what is in a dataset");
  command->add_option("dataset", options->directory, "folder of the dataset")->required();
  command->add_option("--tokens", options->tokens, "how many tokens of the training part to show")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--document", options->document, "show the text of this document instead, counted from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--split", options->split, "where --document is counted")->capture_default_str();
  return {command, [options] { return Report(Inspect(*options)); }};
}

}  // namespace llmctl::data
