// llm-trainer as it lies on this host's disk. An upgrade replaces it under a running agent, but all ranks of a gang
// must run the same one: hence its digest is looked at again before each start.
//
// Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llmctl::agent {

class TrainerProgram {
 public:
  static absl::StatusOr<TrainerProgram> Open(std::string path);

  const std::string& path() const { return path_; }
  // SHA-256 of the file when it was last looked at.
  const std::string& digest() const { return digest_; }
  // Reads the file again if it is another, or was written to, since it was last read. An error leaves the digest.
  absl::Status Look();
  // OK if the file had this digest when it was last looked at, or `digest` is empty.
  absl::Status Check(const std::string& digest) const;

 private:
  explicit TrainerProgram(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string digest_;
  struct stat seen_ = {};
};

}  // namespace llmctl::agent
