// A file written front to back under a temporary name, "<path>.tmp", until Commit gives it its own. Destroyed before,
// nothing is left of it. After an error every call returns it, so that a full disk is said as what it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/base/unique_fd.h"

namespace llmctl::data {

class OutputFile {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Without a name, for what is read back before the writer ends; `path` is where it takes room. Never committed.
  static absl::StatusOr<std::unique_ptr<OutputFile>> CreateNameless(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Bytes appended so far.
  int64_t size() const { return size_; }
  absl::Status Append(absl::string_view bytes);
  // Everything appended is with the system afterwards, and can be read and replaced.
  absl::Status Flush();
  absl::Status ReadAt(int64_t offset, char* out, size_t bytes);
  absl::Status WriteAt(int64_t offset, absl::string_view bytes);
  // On disk, under its own name. The name is durable once the folder is synced.
  absl::Status Commit();

 private:
  OutputFile(UniqueFd fd, std::string path);
  absl::Status Fail(absl::string_view what);

  UniqueFd fd_;
  const std::string path_;
  const std::string temporary_;
  std::string buffer_;
  int64_t size_ = 0;
  bool named_ = true;  // temporarily
  absl::Status failure_;
};

}  // namespace llmctl::data
