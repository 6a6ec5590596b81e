// The folder of a local cluster: who writes which file.
//
//   supervisor.lock       held (flock) by the supervisor as long as it lives: the only proof that it does
//   supervisor.json       what the supervisor runs: pids, restarts
//   coordinator.address   written by the coordinator once it serves; agents and llmctl read it at each dial
//   coordinator/, worker-N/   state of the daemons
//   logs/                 a file per daemon, and supervisor.log
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace llmctl::client {

class ClusterDirectory {
 public:
  // Makes `path` absolute.
  explicit ClusterDirectory(const std::string& path);

  const std::string& path() const { return path_; }
  std::string lock_file() const { return path_ + "/supervisor.lock"; }
  std::string state_file() const { return path_ + "/supervisor.json"; }
  std::string coordinator_address_file() const { return path_ + "/coordinator.address"; }
  std::string metrics_address_file(const std::string& daemon) const { return path_ + "/" + daemon + ".metrics"; }
  std::string data_directory(const std::string& daemon) const { return path_ + "/" + daemon; }
  std::string log_directory() const { return path_ + "/logs"; }
  std::string log_file(const std::string& daemon) const { return log_directory() + "/" + daemon + ".log"; }

 private:
  std::string path_;
};

// An flock that its holder cannot lose and others can probe. Movable; released with the object.
class FileLock {
 public:
  // FailedPrecondition if somebody else holds it.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

// Whether somebody holds the lock.
bool IsLocked(const std::string& path);

// The last lines of a file; empty if it cannot be read.
std::string LogTail(const std::string& path, int lines);

}  // namespace llmctl::client
