// The consuming end of preparation: documents, in order, become a dataset in a folder. Single-threaded.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/prepare/document_stage.h"
#include "worker/data/read/input_files.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

inline constexpr char kRejectsName[] = "rejects.jsonl";

class DatasetOutput {
 public:
  struct Options {
    std::string directory;
    std::string tokenizer;
    double validation_fraction = 0;
    bool force = false;
  };
  // Makes the folder ready; AlreadyExists names what is in the way.
  static absl::StatusOr<std::unique_ptr<DatasetOutput>> Create(const Options& options,
                                                               const std::vector<InputFile>& files);

  absl::Status Add(const ChunkDocuments& chunk);
  // The shards become durable; the manifest lacks only its source.
  absl::StatusOr<DatasetManifest> Finish();
  // Removes the shards again; the rejects stay, as they say what went wrong.
  absl::Status Abandon();

  const std::map<std::string, int64_t>& dropped() const { return dropped_; }
  int64_t documents() const { return documents_; }

 private:
  DatasetOutput(const Options& options, const std::vector<InputFile>& files) : options_(options), files_(files) {}
  absl::Status AddDocument(const Document& document);
  absl::Status AddReject(const Place& place, absl::string_view reason, const std::string& detail);

  const Options options_;
  const std::vector<InputFile>& files_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<TextEncoder> encoder_;
  std::unique_ptr<ShardWriter> train_;
  std::unique_ptr<ShardWriter> validation_;
  std::ofstream rejects_;
  absl::flat_hash_set<ContentHash> seen_;
  std::map<std::string, int64_t> dropped_;
  std::vector<int64_t> train_counts_;  // by token
  std::vector<int32_t> tokens_;
  int64_t documents_ = 0;
};

}  // namespace llmctl::data
