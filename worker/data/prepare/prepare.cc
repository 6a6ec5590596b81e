#include "worker/data/prepare/prepare.h"

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/prepare/chunk_reader.h"
#include "worker/data/prepare/dataset_output.h"
#include "worker/data/prepare/document_stage.h"
#include "worker/data/prepare/ordered_pipeline.h"
#include "worker/data/read/input_files.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

absl::Status Validate(const PrepareOptions& options) {
  std::vector<std::string> faults;
  if (options.inputs.empty()) faults.push_back("--input names nothing to read");
  if (options.output.empty()) faults.push_back("--output is missing");
  if (options.text_field.empty()) faults.push_back("--text-field is empty");
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    faults.push_back(absl::StrCat("--validation-fraction is ", options.validation_fraction, ", expected 0 <= f < 1"));
  }
  if (options.threads < 1 || options.threads > 1024) {
    faults.push_back(absl::StrCat("--threads is ", options.threads, ", expected 1 to 1024"));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

std::string DroppedText(const std::map<std::string, int64_t>& dropped) {
  return absl::StrJoin(
      dropped, ", ", [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.second, " ", entry.first); });
}

// How the dataset was made. No paths, times or threads: the same content gives the same digest anywhere.
std::string SourceJson(const PrepareOptions& options, const PrepareSummary& summary) {
  const Repairs& repairs = summary.repairs;
  json source = {{"options",
                  {{"text_field", options.text_field},
                   {"validation_fraction", options.validation_fraction},
                   {"invalid_utf8", options.invalid_utf8 == InvalidUtf8Policy::kReplace ? "replace" : "reject"},
                   {"normalization", "NFC"}}},
                 {"input", {{"files", summary.files}, {"bytes", summary.bytes_read}, {"records", summary.records}}},
                 {"dropped", summary.dropped},
                 {"repairs",
                  {{"invalid_utf8", repairs.invalid_utf8},
                   {"lone_surrogates", repairs.lone_surrogates},
                   {"byte_order_marks", repairs.byte_order_marks},
                   {"control_characters", repairs.control_characters},
                   {"carriage_returns", repairs.carriage_returns},
                   {"normalized_documents", repairs.normalized_documents}}}};
  return JsonText(source, /*indented=*/false);
}

absl::Status CheckNotEmpty(const PrepareSummary& summary) {
  if (summary.manifest.splits[0].documents > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no document for training is left of ", summary.records, " records in ", summary.files, " files (",
                   summary.dropped.empty() ? "the files are empty" : DroppedText(summary.dropped), "; ",
                   summary.manifest.splits[1].documents, " went to the validation part)",
                   summary.dropped.empty() ? "" : "; the rejects file says where"));
}

absl::Status RunPipeline(const PrepareOptions& options, const InputList& inputs, DatasetOutput& output,
                         PrepareSummary& summary, const std::function<void(const PrepareProgress&)>& report) {
  ReadSettings settings{.text_field = options.text_field, .id_field = "", .invalid_utf8 = options.invalid_utf8};
  ChunkReader reader(inputs.files, settings);
  std::vector<std::unique_ptr<DocumentStage>> stages;
  for (int i = 0; i < options.threads; ++i) {
    stages.push_back(std::make_unique<DocumentStage>(settings));
  }
  OrderedPipeline<Chunk, ChunkDocuments> pipeline(options.threads, 2 * options.threads + 2);
  return pipeline.Run([&] { return reader.Next(); },
                      [&](int worker, Chunk& chunk) { return stages[worker]->Run(chunk); },
                      [&](ChunkDocuments chunk) {
                        summary.bytes_read += chunk.bytes_read;
                        summary.records += chunk.records;
                        summary.blank_lines += chunk.blank_lines;
                        summary.repairs += chunk.repairs;
                        absl::Status added = output.Add(chunk);
                        report({summary.bytes_read, inputs.bytes, output.documents()});
                        return added;
                      });
}

}  // namespace

double UnigramEntropy(const std::vector<int64_t>& counts) {
  double total = 0, entropy = 0;
  for (int64_t count : counts) total += static_cast<double>(count);
  for (int64_t count : counts) {
    double p = static_cast<double>(count) / total;
    if (count > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

absl::StatusOr<PrepareSummary> Prepare(const PrepareOptions& options,
                                       const std::function<void(const PrepareProgress&)>& report) {
  LLM_RETURN_IF_ERROR(Validate(options));
  LLM_ASSIGN_OR_RETURN(InputList inputs, ListInputs(options.inputs, options.output));
  DatasetOutput::Options output_options{options.output, options.tokenizer, options.validation_fraction, options.force};
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<DatasetOutput> output, DatasetOutput::Create(output_options, inputs.files));
  PrepareSummary summary;
  summary.files = inputs.files.size();
  summary.passed_over = inputs.passed_over;
  LLM_RETURN_IF_ERROR(RunPipeline(options, inputs, *output, summary, report));
  LLM_ASSIGN_OR_RETURN(summary.manifest, output->Finish());
  summary.dropped = output->dropped();
  if (absl::Status enough = CheckNotEmpty(summary); !enough.ok()) {
    LLM_RETURN_IF_ERROR(output->Abandon());
    return enough;
  }
  summary.manifest.source_json = SourceJson(options, summary);
  LLM_RETURN_IF_ERROR(WriteManifest(options.output, summary.manifest));
  LLM_ASSIGN_OR_RETURN(summary.digest, ManifestDigest(options.output));
  return summary;
}

}  // namespace llmctl::data
