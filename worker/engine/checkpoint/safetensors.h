// safetensors files: the tensor container of the Hugging Face ecosystem.
//
//   u64 little endian   bytes of the header
//   header              JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                              "__metadata__": {"key": "value"}}, padded with spaces to a multiple of 64 bytes
//   data                the tensors' bytes, little endian, at their offsets, without gaps or overlaps
//
// A file from outside is not trusted: ParseSafetensorsHeader accepts nothing that the rules above exclude, so
// that what it returns can be used as pointers into the file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::checkpoint {

enum class DataType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };

int64_t ElementBytes(DataType type);
absl::string_view DataTypeName(DataType type);  // "F32"
absl::StatusOr<DataType> ParseDataType(absl::string_view name);

// A tensor to be written: dense memory of the caller, which is not copied.
struct TensorView {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;

  int64_t bytes() const;
};

// A tensor in a file.
struct TensorEntry {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // from the start of the data
  int64_t bytes = 0;
};

struct SafetensorsHeader {
  int64_t data_offset = 0;           // of the data in the file
  std::vector<TensorEntry> tensors;  // by offset
  std::map<std::string, std::string> metadata;
};

// `start` is the first bytes of a file of `file_bytes`, at least its whole header. DataLoss says what is wrong.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view start, int64_t file_bytes);
// Length and header, padded: all that comes before the data.
std::string SafetensorsHeaderText(absl::Span<const TensorView> tensors,
                                  const std::map<std::string, std::string>& metadata);

struct WrittenTensor {
  std::string name;
  std::string checksum;  // Checksum128 of its bytes
};

struct WrittenFile {
  int64_t bytes = 0;
  std::string checksum;  // Checksum128 of the file
  std::vector<WrittenTensor> tensors;
};

// Writes a new file, durable on return (but for its name: sync the folder). AlreadyExists if it is there.
absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorView> tensors,
                                             const std::map<std::string, std::string>& metadata = {});

// A memory-mapped file. Thread-safe.
class SafetensorsReader {
 public:
  // DataLoss when the file is not what the format says.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(const std::string& path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  absl::string_view content() const { return {mapping_, bytes_}; }
  absl::string_view TensorBytes(const TensorEntry& entry) const {
    return content().substr(header_.data_offset + entry.offset, entry.bytes);
  }

 private:
  SafetensorsReader(const char* mapping, size_t bytes) : mapping_(mapping), bytes_(bytes) {}

  const char* mapping_;
  size_t bytes_;
  SafetensorsHeader header_;
};

}  // namespace llmctl::checkpoint
