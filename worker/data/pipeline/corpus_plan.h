// What is to be done: the files there are, cut into tasks, and digests of what each stage's result follows from.
//
// The plan depends on the specification and the names, sizes and times of the files, never on threads, workers or
// memory: nor does what comes out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/contract/corpus_config.h"
#include "worker/data/read/input_files.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

struct PlannedFile {
  InputFile file;
  int source = 0;  // in the specification
  int64_t modified_ns = 0;
};

struct CleanTask {
  std::vector<InputRange> pieces;
  int64_t bytes = 0;  // as the files lie there
};

// 0: chosen by the size of the input, so that a small corpus has work for several threads and a large one few files.
struct PlanLimits {
  int64_t task_bytes = 0;     // of input, about: up to 256 MiB
  int64_t segment_bytes = 0;  // of text read, about: what a killed task has to do again at most; up to 64 MiB
};

struct CorpusPlan {
  contract::CorpusConfig config;
  std::vector<PlannedFile> files;
  std::vector<CleanTask> tasks;
  std::vector<std::string> passed_over;
  PlanLimits limits;  // not 0
  int64_t bytes = 0;
  std::shared_ptr<const Tokenizer> tokenizer;  // null in a plan that was read: reading a vocabulary takes its time
  std::string tokenizer_digest;
  std::string models_text;  // model files of the cleaning stages, a line each with the time of its last change
  // 32 characters each.
  std::string clean_digest;
  std::vector<std::string> exact_digests;
  std::string near_digest;
  std::string encode_digest;
};

// NotFound when a source has no file.
absl::StatusOr<CorpusPlan> MakeCorpusPlan(const contract::CorpusConfig& config, const PlanLimits& limits);

// As JSON: for other processes of the run, and for questions about the dataset later.
std::string EncodeCorpusPlan(const CorpusPlan& plan);
absl::StatusOr<CorpusPlan> DecodeCorpusPlan(absl::string_view json, absl::string_view what);

}  // namespace llmctl::data
