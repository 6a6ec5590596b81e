// llm-data sample: documents of a dataset at random.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/command/command.h"
#include "worker/data/inspect/dataset_view.h"

namespace llmctl::data {
namespace {

struct Options {
  std::string directory;
  std::string split = "train";
  int64_t count = 5;
  uint64_t seed = 1;
  bool json = false;
};

absl::Status Sample(const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetView> view, DatasetView::Open(options.directory));
  LLM_ASSIGN_OR_RETURN(std::vector<int64_t> documents, view->Sample(options.split, options.count, options.seed));
  for (int64_t document : documents) {
    LLM_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, view->Tokens(options.split, document));
    LLM_ASSIGN_OR_RETURN(std::string text, view->Text(options.split, document));
    if (options.json) {
      nlohmann::json line = {{"split", options.split}, {"document", document}, {"tokens", tokens.size()},
                             {"text", text}};
      std::cout << JsonText(line, /*indented=*/false) << "\n";
    } else {
      std::cout << "---- " << options.split << " " << document << ", " << tokens.size() << " tokens\n" << text << "\n";
    }
  }
  return absl::OkStatus();
}

}  // namespace

Verb AddSample(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sample", "show documents of a dataset at random");
  command->add_option("dataset", options->directory, "folder of the dataset")->required();
  command->add_option("--split", options->split, "train or validation")->capture_default_str();
  command->add_option("--count", options->count, "how many")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--seed", options->seed, "the same seed shows the same documents")->capture_default_str();
  command->add_flag("--json", options->json, "a JSON object a line");
  return {command, [options] { return Report(Sample(*options)); }};
}

}  // namespace llmctl::data
