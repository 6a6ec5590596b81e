// A prepared dataset on disk: what `llmctl data prepare` writes and training reads.
//
//   <dir>/manifest.json          written last; its SHA-256 is the dataset's digest
//   <dir>/train.bin, train.idx             Megatron-LM indexed dataset
//   <dir>/validation.bin, validation.idx   documents chosen by a hash of their content
//   <dir>/tokenizer.json         if the manifest's tokenizer says so (dataset_tokenizer.h)
//
// The .bin is token ids and nothing else. What the .idx makes of them is the dataset's mode:
//
//   concat   a document is one sequence. The split is one stream of documents laid end to end, samples are windows.
//   packed   a row is what one sample sees: pieces of documents, at most `row_tokens` tokens. A piece is one sequence,
//            a row is one Megatron document. Rows are not padded on disk; the loader pads them.
//
// .idx (little endian): "MMIDIDX\0\0", version u64 = 1, type code u8 (8 = uint16, 4 = int32), sequences S u64,
// document marks D u64, lengths i32[S], byte offsets i64[S], document marks i64[D] (0, then the sequence count after
// each document); packed only: modes i8[S], 1 for a piece that goes on with a document begun in another row.
// (Megatron-LM reads modes of multimodal datasets only.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::data {

// A part of a split that samplers draw from at a weight: a source, or one language of it. Groups lie one after
// another and cover the split.
struct GroupInfo {
  std::string name;   // "wiki/en"
  int64_t begin = 0;  // concat: tokens of the stream; packed: rows
  int64_t end = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
  double weight = 0;  // share of the tokens that a run is to see; the weights of a split sum to 1
};

// Of a split that is packed. A document longer than a row is cut into pieces; with truncation its first is kept.
struct PackedFigures {
  int64_t rows = 0;
  int64_t pieces = 0;
  int64_t cut_documents = 0;
  int64_t truncated_documents = 0;
  int64_t truncated_tokens = 0;  // not in the dataset
  int64_t padding_tokens = 0;    // what is missing to rows * row_tokens
};

struct SplitInfo {
  std::string name;  // "train", "validation"
  int64_t documents = 0;
  int64_t tokens = 0;
  std::string bin_checksum;  // Checksum128 of the .bin and .idx
  std::string idx_checksum;
  std::vector<GroupInfo> groups;  // empty: the split is one
  std::optional<PackedFigures> packed;
};

struct PackingInfo {
  int row_tokens = 0;  // the sequence length of training + 1
  int padding_id = 0;  // what the loader fills rows with; never a target
};

struct DatasetManifest {
  int version = 1;
  std::string tokenizer;       // "byte", or a path; relative ones are inside the dataset
  int vocabulary_size = 0;     // specials included
  int end_of_document = 0;     // token id between documents
  double unigram_entropy = 0;  // nats per token, of the training part
  std::vector<SplitInfo> splits;
  std::string source_json;  // how it was made: sources, counters, options
  std::string tokenizer_digest;        // Tokenizer::digest(); empty in datasets older than the field
  std::optional<PackingInfo> packing;  // none: concat
};

absl::StatusOr<DatasetManifest> ReadManifest(const std::string& directory);
// The same from text; InvalidArgument names the field at fault. `what` names the text in messages.
absl::StatusOr<DatasetManifest> DecodeManifest(absl::string_view text, absl::string_view what);
// SHA-256 of manifest.json as it lies there.
absl::StatusOr<std::string> ManifestDigest(const std::string& directory);
absl::Status WriteManifest(const std::string& directory, const DatasetManifest& manifest);
// InvalidArgument if there is no split of this name.
absl::StatusOr<SplitInfo> FindSplit(const DatasetManifest& manifest, const std::string& directory,
                                    const std::string& split);

// Writes one split; not thread-safe. Memory does not grow with the split. Files have other names until Finish, which
// makes them durable; a writer destroyed before leaves nothing. After an error every call returns it.
class ShardWriter {
 public:
  // Concat mode; CreatePackedWriter (pack/packed_writer.h) is the other.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(const std::string& directory, const std::string& split,
                                                             int vocabulary_size);
  virtual ~ShardWriter() = default;
  // What follows belongs to this group. A split has groups from its first document on, or none. Their weights are
  // their shares of the tokens; others are set in the manifest before it is written (mix/mix.h).
  virtual absl::Status BeginGroup(const std::string& name) = 0;
  // Not empty; the end-of-document token is the caller's.
  virtual absl::Status AddDocument(absl::Span<const int32_t> tokens) = 0;
  virtual absl::StatusOr<SplitInfo> Finish() = 0;
};

// Memory-mapped tokens of one split. Thread-safe. Opening does not read the files through, so that it costs the same
// for any size: VerifyOnce (verify_once.h) does. What a damaged index says is checked where it is used.
class ShardReader {
 public:
  struct Sequence {
    int64_t begin = 0;  // token of the stream
    int64_t length = 0;
    bool continues = false;  // a piece that goes on with a document begun in another row
  };
  struct SequenceRange {
    int64_t begin = 0;
    int64_t end = 0;
  };

  // InvalidArgument / DataLoss when the files are not what the manifest and the format promise.
  static absl::StatusOr<std::unique_ptr<ShardReader>> Open(const std::string& directory, const std::string& split);
  virtual ~ShardReader() = default;
  virtual int64_t tokens() const = 0;
  virtual int64_t documents() const = 0;
  // Packed: rows; 0 in concat mode.
  virtual int64_t rows() const = 0;
  // Concat: documents; packed: pieces.
  virtual int64_t sequences() const = 0;
  // DataLoss if it does not lie in the stream.
  virtual absl::StatusOr<Sequence> At(int64_t sequence) const = 0;
  // The sequences of a row, in packed mode.
  virtual absl::StatusOr<SequenceRange> Row(int64_t row) const = 0;
  // The last sequence that begins at or before `token`: a binary search in the mapped index.
  virtual int64_t Find(int64_t token) const = 0;
  // Copies tokens [begin, begin + out.size()) of the stream; both ends inside it.
  virtual void Copy(int64_t begin, absl::Span<int32_t> out) const = 0;
  // Has the system read these tokens from disk while others are copied.
  virtual void WillNeed(int64_t begin, int64_t count) const = 0;
};

}  // namespace llmctl::data
