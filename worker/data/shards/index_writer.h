// Writes an .idx while its sequences come, in memory that does not grow with them.
//
// Lengths go straight to their place in the file; offsets and marks follow from them at Finish, by reading the lengths
// back. What they do not tell, which sequences make a packed row and which continue a document, waits in a file beside
// it that has no name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/digest.h"
#include "worker/data/shards/index_format.h"
#include "worker/data/shards/output_file.h"

namespace llmctl::data {

class IndexWriter {
 public:
  // `packed`: documents may have several sequences, and modes are written.
  static absl::StatusOr<std::unique_ptr<IndexWriter>> Create(const std::string& path, TokenType type, bool packed);

  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return documents_; }
  absl::Status AddSequence(int32_t length, bool continues);
  absl::Status EndDocument();
  // The index is whole and on disk but for its name, which Commit gives. Its Checksum128.
  absl::StatusOr<std::string> Finish();
  absl::Status Commit() { return idx_->Commit(); }

 private:
  IndexWriter(TokenType type, std::unique_ptr<OutputFile> idx) : type_(type), idx_(std::move(idx)) {}

  absl::Status Add(absl::string_view bytes);
  absl::Status WriteOffsets();
  absl::Status WriteMarks();
  absl::Status CopyModes();

  const TokenType type_;
  std::unique_ptr<OutputFile> idx_;
  std::unique_ptr<OutputFile> marks_;  // packed: i64 marks but the first
  std::unique_ptr<OutputFile> modes_;  // packed
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
  StreamingChecksum checksum_;
};

}  // namespace llmctl::data
