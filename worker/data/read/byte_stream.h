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
  int64_t offset = 0;  // in the file
  std::string detail;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Gives at least one byte and at most `bytes_max`; 0 at the end only.
  virtual absl::StatusOr<size_t> Read(char* out, size_t bytes_max) = 0;
  // Bytes of the file that were taken in, from its start.
  virtual int64_t offset() const = 0;
  // Where the member or frame begins that holds the byte given last, as in Position.
  virtual int64_t frame_offset() const { return 0; }
  virtual int64_t frame_byte() const { return 0; }
  // After the end.
  virtual const std::optional<StreamFault>& fault() const = 0;
  virtual void CountRepairs(Repairs& repairs) const {}
};

struct StreamStart {
  int64_t offset = 0;  // in the file: of the file itself, a member or a frame
  int64_t byte = 0;    // of the decompressed bytes
};

// A file that is named as a compressed one and is none is given as it is, and counted.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(const FileSystem& files, const InputFile& file,
                                                           const StreamStart& start, int64_t zstd_window_bytes_max);

}  // namespace llmctl::data
