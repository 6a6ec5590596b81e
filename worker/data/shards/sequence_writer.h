// The two files of one split, for the writers of either mode: sequences go in, what they mean is the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "worker/data/shards/dataset.h"
#include "worker/data/shards/index_writer.h"
#include "worker/data/shards/output_file.h"

namespace llmctl::data {

class SequenceWriter {
 public:
  struct Options {
    std::string directory;
    std::string split;
    int vocabulary_size = 0;
    bool packed = false;
  };
  static absl::StatusOr<std::unique_ptr<SequenceWriter>> Create(const Options& options);

  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return idx_->sequences(); }
  // Megatron documents: rows in packed mode.
  int64_t rows() const { return idx_->documents(); }

  // InvalidArgument for an empty sequence, one that the index cannot hold, or a token outside the vocabulary.
  absl::Status Check(absl::Span<const int32_t> tokens) const;
  // Checked tokens.
  absl::Status AddSequence(absl::Span<const int32_t> tokens, bool continues);
  absl::Status EndDocument() { return idx_->EndDocument(); }

  // All documents so far; starts the next group at `at`.
  absl::Status BeginGroup(const std::string& name, int64_t at);
  void CountDocument(int64_t tokens);

  // Both files are durable under their names. `end`: of the last group.
  absl::StatusOr<SplitInfo> Finish(int64_t end);

 private:
  SequenceWriter(Options options, std::unique_ptr<OutputFile> bin, std::unique_ptr<IndexWriter> idx);

  const Options options_;
  const TokenType type_;
  std::unique_ptr<OutputFile> bin_;
  std::unique_ptr<IndexWriter> idx_;
  StreamingChecksum checksum_;
  std::vector<uint16_t> narrow_;
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
  std::vector<GroupInfo> groups_;
};

}  // namespace llmctl::data
