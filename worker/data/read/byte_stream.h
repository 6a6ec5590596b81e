// The decompressed bytes of a file.
//
// Damage in compressed data is no error: the stream gives what decodes before it, ends, and says why in fault().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/normalize/repairs.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/input_files.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

struct StreamFault {
  Reason reason = Reason::kTruncatedFile;
  std::string detail;  // says at which byte of the file
};

// Where in a file a gzip member or zstd frame begins; 0, 0 in one that is not compressed.
struct FrameStart {
  int64_t offset = 0;  // in the file
  int64_t byte = 0;    // of the decompressed bytes
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Gives at least one byte and at most `bytes_max`, all of one frame; 0 at the end only.
  virtual absl::StatusOr<size_t> Read(char* out, size_t bytes_max) = 0;
  // Of the frame whose bytes were given last.
  virtual FrameStart frame() const { return {}; }
  // Bytes of the file that were taken in, from its start.
  virtual int64_t offset() const = 0;
  // After the end: why it came early.
  const std::optional<StreamFault>& fault() const { return fault_; }
  const Repairs& repairs() const { return repairs_; }

 protected:
  std::optional<StreamFault> fault_;
  Repairs repairs_;
};

struct StreamOptions {
  // For a compressed file where it is decompressed from; for another the byte to start with.
  FrameStart start;
  int64_t zstd_window_bytes_max = int64_t{128} << 20;
};

// A file that is named as a compressed one and is none is given as it is, and counted.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(const FileSystem& files, const InputFile& file,
                                                           const StreamOptions& options);

}  // namespace llmctl::data
