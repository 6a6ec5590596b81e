// llm-data verify: reads every byte of a dataset and compares it with its manifest.

#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/command/command.h"
#include "worker/data/shards/dataset_check.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/verify_once.h"

namespace llmctl::data {
namespace {

absl::Status Verify(const std::string& directory) {
  LLM_RETURN_IF_ERROR(VerifyDataset(directory));
  absl::PrintF("dataset %s is whole\n", directory);
  LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, ReadManifest(directory));
  absl::Status stamped = StampVerified(directory, manifest);
  if (!stamped.ok()) std::cerr << "llm-data: runs will not know of it: " << stamped.message() << "\n";
  return absl::OkStatus();
}

}  // namespace

Verb AddVerify(CLI::App& app) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("verify", "read every byte of a dataset and compare it with its manifest");
  command->add_option("dataset", *directory, "folder of the dataset")->required();
  return {command, [directory] { return Report(Verify(*directory)); }};
}

}  // namespace llmctl::data
