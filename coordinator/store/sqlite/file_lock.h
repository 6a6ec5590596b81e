// A lock file: which process owns something on disk, and its pid for the one that comes second.
//
// flock(2), so the kernel releases it however the owner ends; the pid in the file is only for people.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace llmctl::store {

class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // FailedPrecondition naming the owner's pid if another process (or object) holds it.
  absl::Status Acquire(const std::string& path);

 private:
  int fd_ = -1;
};

}  // namespace llmctl::store
