// The files that tasks keep for each other, behind an interface: tests break it at any write, and other
// file systems can take its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// A file under a temporary name until Commit; destroyed before, nothing is left of it.
class SpillWriter {
 public:
  virtual ~SpillWriter() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // On disk and under its name, in place of an older one, when it returns.
  virtual absl::Status Commit() = 0;
};

class SpillReader {
 public:
  virtual ~SpillReader() = default;
  virtual uint64_t size() const = 0;
  // Exactly `bytes` bytes; DataLoss if the file ends before.
  virtual absl::Status ReadAt(uint64_t offset, char* out, size_t bytes) const = 0;
};

// Safe from any thread.
class SpillFiles {
 public:
  virtual ~SpillFiles() = default;
  // Makes the folders above it.
  virtual absl::StatusOr<std::unique_ptr<SpillWriter>> Create(const std::string& path) = 0;
  // NotFound if there is none.
  virtual absl::StatusOr<std::unique_ptr<SpillReader>> Open(const std::string& path) = 0;
  // The folder and all in it; fine if there is none.
  virtual absl::Status RemoveFolder(const std::string& path) = 0;
};

class LocalSpillFiles : public SpillFiles {
 public:
  // kRename: what is committed survives the end of this process, but not the loss of power. For files of which there
  // are many and that whoever uses them makes durable, or throws away, together.
  enum class Durability { kSync, kRename };
  explicit LocalSpillFiles(Durability durability = Durability::kSync) : durability_(durability) {}

  absl::StatusOr<std::unique_ptr<SpillWriter>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<SpillReader>> Open(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;

 private:
  const Durability durability_;
};

}  // namespace llmctl::data
