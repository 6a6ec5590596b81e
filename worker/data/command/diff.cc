// llm-data diff: what one dataset has that another has not.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/command/command.h"
#include "worker/data/inspect/dataset_diff.h"
#include "worker/data/inspect/dataset_view.h"

namespace llmctl::data {
namespace {

// Of a document in a list.
constexpr size_t kExcerptCharacters = 100;

struct Options {
  std::string before;
  std::string after;
  std::string folder;
  int64_t memory_megabytes = 256;
  size_t examples = 5;
};

absl::Status PrintPlace(const char* mark, const DatasetView& view, const DatasetDiff::Place& place) {
  LLM_ASSIGN_OR_RETURN(std::string text, view.Text(place.split, place.document));
  absl::PrintF("  %s %s %d: %s\n", mark, place.split, place.document, Excerpt(text, kExcerptCharacters));
  return absl::OkStatus();
}

absl::Status PrintDiff(const DatasetView& before, const DatasetView& after, const DatasetDiff& diff) {
  absl::PrintF("compared by %s\n", diff.by_text ? "text, as the tokenizers differ" : "tokens");
  absl::PrintF("same    %12d documents, %d of them in another split\n", diff.same, diff.moved);
  absl::PrintF("removed %12d\n", diff.removed);
  for (const DatasetDiff::Place& place : diff.removed_examples) {
    LLM_RETURN_IF_ERROR(PrintPlace("-", before, place));
  }
  absl::PrintF("added   %12d\n", diff.added);
  for (const DatasetDiff::Place& place : diff.added_examples) LLM_RETURN_IF_ERROR(PrintPlace("+", after, place));
  absl::PrintF("changed %12d (they begin alike)\n", diff.changed);
  for (const DatasetDiff::Change& change : diff.changed_examples) {
    LLM_RETURN_IF_ERROR(PrintPlace("<", before, change.before));
    LLM_RETURN_IF_ERROR(PrintPlace(">", after, change.after));
  }
  return absl::OkStatus();
}

absl::Status Diff(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetView> before, DatasetView::Open(options.before));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetView> after, DatasetView::Open(options.after));
  DiffOptions diff_options;
  diff_options.memory_bytes = static_cast<uint64_t>(options.memory_megabytes) << 20;
  diff_options.examples_max = options.examples;
  diff_options.folder = absl::StrCat(options.folder, "/llm-data-diff-", ::getpid());
  LocalSpillFiles files;
  absl::StatusOr<DatasetDiff> diff = DiffDatasets(*before, *after, diff_options, files);
  LLM_RETURN_IF_ERROR(files.RemoveFolder(diff_options.folder));
  if (!diff.ok()) return diff.status();
  return PrintDiff(*before, *after, *diff);
}

}  // namespace

Verb AddDiff(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->folder = std::filesystem::temp_directory_path().string();
  CLI::App* command = app.add_subcommand("diff", "compare the documents of two datasets");
  command->add_option("before", options->before, "folder of a dataset")->required();
  command->add_option("after", options->after, "folder of another")->required();
  command->add_option("--examples", options->examples, "how many of each kind to show")->capture_default_str();
  command->add_option("--memory-mb", options->memory_megabytes, "memory for hashes; more is sorted on disk")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--tmp", options->folder, "folder for what does not fit the memory")->capture_default_str();
  return {command, [options] { return Report(Diff(*options)); }};
}

}  // namespace llmctl::data
