// Where input lies. All reading of input goes through this interface, so that object stores can be added without the
// readers knowing: a path without a scheme, or with file://, is a local one, and there is no other scheme yet.
//
// Implementations are thread-safe; what they open is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

struct FileInfo {
  std::string path;
  int64_t bytes = 0;
  bool is_folder = false;
};

// The bytes of a file from some offset on.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Gives at least one byte and at most `bytes_max`; 0 at the end only.
  virtual absl::StatusOr<size_t> Read(char* out, size_t bytes_max) = 0;
};

// A file of which any part can be read.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual int64_t bytes() const = 0;
  // Gives `bytes`, or fewer where the file ends before.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, char* out, size_t bytes) const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path) const = 0;
  // The files in a folder and in those below it, sorted by path; links to folders are not followed. A folder whose
  // identity is `excluded` is passed over.
  virtual absl::StatusOr<std::vector<FileInfo>> List(const std::string& folder,
                                                     const std::string& excluded) const = 0;
  // Files and folders that match, sorted; none is no error.
  virtual absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) const = 0;
  // A text that is equal for two names of the same file or folder. The path need not exist.
  virtual std::string Identity(const std::string& path) const = 0;
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path, int64_t offset) const = 0;
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path) const = 0;
};

// The one that `path` names by its scheme. InvalidArgument, naming the schemes there are, for any other.
absl::StatusOr<std::unique_ptr<FileSystem>> FileSystemOf(absl::string_view path);

}  // namespace llmctl::data
