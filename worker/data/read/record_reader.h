// Reads a file, or a range of one, as chunks of about ReadSettings::chunk_bytes.
//
//   LLM_ASSIGN_OR_RETURN(auto reader, RecordReader::Open(*files, list.files[i], {.file = i}, settings));
//   while (true) {
//     LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader->Next());
//     if (chunk == nullptr) break;
//     parser.Parse(*chunk, parsed);   // chunk_parser.h; on any thread
//   }                                 // chunk->end may be kept: .position = it goes on from there
//
// Where a chunk ends depends on the bytes from its start on, on the settings and on the range's end, and on nothing
// else: a reader opened at a chunk's end gives exactly the chunks that would have followed.
//
// Damage (compressed data that is cut off or does not decode) is no error: what comes before it is read, and the
// last chunk ends with a reject that says where and why. Errors are those of the file system.
//
// Memory: a chunk's bytes and at most as many again, or those of one document that is longer than a chunk; for zstd
// also the frame's window.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "worker/data/read/file_system.h"
#include "worker/data/read/input_files.h"
#include "worker/data/read/read_settings.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

// Which part of a file: [begin, end) is a range of CutInputs. `position`, unless it is the default one, is the end of
// a chunk of the same range.
struct ReadFrom {
  int file = 0;  // stands in the places of what is read
  int64_t begin = 0;
  int64_t end = kFileEnd;
  Position position;
};

class RecordReader {
 public:
  // `files` must outlive the reader. InvalidArgument for a range of a file that has none.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const FileSystem& files, const InputFile& file,
                                                            const ReadFrom& from, const ReadSettings& settings);
  virtual ~RecordReader() = default;

  // Null at the end.
  virtual absl::StatusOr<std::unique_ptr<Chunk>> Next() = 0;
};

}  // namespace llmctl::data
