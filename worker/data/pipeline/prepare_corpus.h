// A corpus from its specification to a dataset.
//
//   <output>/manifest.json, *.bin, *.idx   the dataset (shards/dataset.h); the manifest is written last
//   <output>/tokenizer.json                a copy, unless the tokenizer is built in
//   <output>/report.json, report.html      what was read, kept and dropped, and why
//   <output>/rejects.jsonl                 records that could not be read
//   <output>/audit/                        the verdict on every record, for `llmctl data explain`
//   <output>/.work/                        while it is being made; a run that was stopped goes on from there
//
// What comes out depends on the input's content and order and the specification, not on threads, processes, memory or
// where a run was stopped.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/contract/corpus_config.h"
#include "worker/data/pipeline/corpus_plan.h"
#include "worker/data/pipeline/pipeline.h"
#include "worker/data/shards/dataset.h"

namespace llmctl::data {

struct PrepareOptions {
  bool force = false;      // replace a dataset that is there
  bool keep_work = false;  // for a later run with another specification
  PlanLimits limits;
};

struct PreparedCorpus {
  DatasetManifest manifest;
  std::string digest;
  nlohmann::json report;     // report.json
  int64_t damaged_files = 0;  // whose good part was read
};

// InvalidArgument for a specification that cannot work, or when no document is left; AlreadyExists when the output
// holds a dataset; FailedPrecondition while another run writes there. `observer` may be null.
absl::StatusOr<PreparedCorpus> PrepareCorpus(const contract::CorpusConfig& config, const PrepareOptions& options,
                                             Pipeline::Observer* observer);

// The part of a process that PrepareCorpus has started: takes part in all stages. `board` is the descriptor it
// inherited.
absl::Status TakePart(const std::string& work_folder, int board, const ProcessLimits& limits);

// What each of a run's processes may use.
absl::StatusOr<ProcessLimits> LimitsOf(const contract::CorpusConfig& config);

}  // namespace llmctl::data
