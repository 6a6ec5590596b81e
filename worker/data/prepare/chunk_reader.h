// Reads input files into chunks that threads can work on independently: whole lines of a .jsonl file, or one
// document of a .txt file.
//
// Memory is bounded by the chunk: a chunk has about kChunkBytes unless a single line is longer. A line beyond
// kDocumentBytesMax is passed over and reported; a .txt file beyond it is cut at a line end (or, failing that, at
// the limit) into several documents.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/prepare/input_files.h"
#include "worker/data/prepare/json_line.h"

namespace llmctl::data {

inline constexpr size_t kChunkBytes = size_t{1} << 20;
inline constexpr size_t kDocumentBytesMax = size_t{64} << 20;

// A place in the input. `byte` counts from 0, `line` from 1.
struct Place {
  int file = 0;  // index of the input file
  int64_t line = 1;
  int64_t byte = 0;
};

struct Reject {
  Place place;
  Reason reason = Reason::kInvalidJson;
  std::string detail;
};

struct Chunk {
  InputFormat format = InputFormat::kText;
  Place start;
  std::string bytes;
  std::vector<Reject> rejects;   // what the reader itself refused, before `bytes`
  int64_t byte_order_marks = 0;  // taken off the start of the file
  int64_t bytes_read = 0;        // of the input, by this chunk
};

struct ReaderLimits {
  size_t chunk_bytes = kChunkBytes;
  size_t document_bytes_max = kDocumentBytesMax;
};

class ChunkReader {
 public:
  explicit ChunkReader(const std::vector<InputFile>& files, ReaderLimits limits = {});
  ~ChunkReader();

  // The next chunk in input order; null at the end. An error of the file system ends the reading.
  absl::StatusOr<std::unique_ptr<Chunk>> Next();

 private:
  absl::Status OpenNext();
  absl::Status Fill(size_t bytes);
  void TakeMarks(Chunk& chunk);
  absl::Status SkipLine(Chunk& chunk);
  void Cut(size_t bytes, Chunk& chunk);
  absl::StatusOr<size_t> ChunkEnd();

  const std::vector<InputFile>& files_;
  const ReaderLimits limits_;
  int file_ = -1;
  int fd_ = -1;
  bool at_end_ = true;  // of the current file: the buffer holds the rest
  std::string buffer_;
  Place place_;  // of the buffer's first byte
};

}  // namespace llmctl::data
