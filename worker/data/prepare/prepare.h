// Text in, token shards out.
//
//   read -> parse, repair, normalise (threads) -> drop exact duplicates -> tokens -> split -> shards, manifest
//
// The output depends on the input's content and order and the options, not on threads, paths or time. Memory is
// bounded by the chunks in flight, plus 16 bytes (about 32 with the table's slack) a distinct document for finding
// duplicates. The manifest is written last: a run that was killed leaves no dataset.
//
// A document goes to the validation part if its content hash, as a fraction of 2^64, is below validation_fraction:
// which part it is in does not change when others are added or removed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "worker/data/normalize/repairs.h"
#include "worker/data/read/read_settings.h"
#include "worker/data/shards/dataset.h"

namespace llmctl::data {

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer = "byte";
  std::string text_field = "text";
  double validation_fraction = 0.01;
  InvalidUtf8Policy invalid_utf8 = InvalidUtf8Policy::kReplace;
  int threads = 1;
  bool force = false;  // replace a dataset that is there
};

struct PrepareProgress {
  int64_t bytes_read = 0;
  int64_t bytes_total = 0;
  int64_t documents = 0;
};

struct PrepareSummary {
  int64_t files = 0;
  int64_t bytes_read = 0;
  int64_t records = 0;
  int64_t blank_lines = 0;
  std::vector<std::string> passed_over;
  std::map<std::string, int64_t> dropped;  // by reason; the lines of rejects.jsonl
  Repairs repairs;
  DatasetManifest manifest;
  std::string digest;
};

// InvalidArgument for options that cannot work, or when no document is left; AlreadyExists when the output holds a
// dataset or part of one. `report` is called on this thread now and then.
absl::StatusOr<PrepareSummary> Prepare(const PrepareOptions& options,
                                       const std::function<void(const PrepareProgress&)>& report);

// Nats per token of the empirical distribution of `counts`: -sum p ln p. Over a training part, end-of-document tokens
// included, it is the loss of the best model that ignores context: what a trained model must beat.
double UnigramEntropy(const std::vector<int64_t>& counts);

}  // namespace llmctl::data
