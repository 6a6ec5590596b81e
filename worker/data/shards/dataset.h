// A prepared dataset on disk: what `llmctl data prepare` writes and training reads.
//
//   <dir>/manifest.json          written last; its SHA-256 is the dataset's digest
//   <dir>/train.bin, train.idx             Megatron-LM indexed dataset, one document a sequence
//   <dir>/validation.bin, validation.idx   documents chosen by a hash of their content
//
// .idx (little endian): "MMIDIDX\0\0", version u64 = 1, type code u8 (8 = uint16, 4 = int32), sequences u64,
// documents u64, lengths i32[sequences], byte offsets i64[sequences], document starts i64[documents].
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::data {

struct SplitInfo {
  std::string name;  // "train", "validation"
  int64_t documents = 0;
  int64_t tokens = 0;
  std::string bin_checksum;  // Checksum128 of the .bin and .idx
  std::string idx_checksum;
};

struct DatasetManifest {
  int version = 1;
  std::string tokenizer;       // "byte"
  int vocabulary_size = 0;     // specials included
  int end_of_document = 0;     // token id between documents
  double unigram_entropy = 0;  // nats per token, of the training part
  std::vector<SplitInfo> splits;
  std::string source_json;  // how it was made: sources, counters, options
};

absl::StatusOr<DatasetManifest> ReadManifest(const std::string& directory);
// The same from text; InvalidArgument names the field at fault. `what` names the text in messages.
absl::StatusOr<DatasetManifest> DecodeManifest(absl::string_view text, absl::string_view what);
// SHA-256 of manifest.json as it lies there.
absl::StatusOr<std::string> ManifestDigest(const std::string& directory);
absl::Status WriteManifest(const std::string& directory, const DatasetManifest& manifest);

// Writes one split; Finish makes it durable. Not thread-safe.
class ShardWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(const std::string& directory, const std::string& split,
                                                             int vocabulary_size);
  virtual ~ShardWriter() = default;
  virtual absl::Status AddDocument(absl::Span<const int32_t> tokens) = 0;
  virtual absl::StatusOr<SplitInfo> Finish() = 0;
};

// Memory-mapped tokens of one split, seen as one stream of documents laid end to end. Thread-safe.
class ShardReader {
 public:
  // InvalidArgument / DataLoss when the files are not what the manifest and the format promise.
  static absl::StatusOr<std::unique_ptr<ShardReader>> Open(const std::string& directory, const std::string& split);
  virtual ~ShardReader() = default;
  virtual int64_t tokens() const = 0;
  virtual int64_t documents() const = 0;
  // Copies tokens [begin, begin + out.size()) of the stream; both ends inside it.
  virtual void Copy(int64_t begin, absl::Span<int32_t> out) const = 0;
};

}  // namespace llmctl::data
