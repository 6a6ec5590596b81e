// Other processes that take part in a run: this program again, with a page of memory in common (stage_board.h).
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llmctl::data {

// They die with this process.
class WorkerProcesses {
 public:
  // Starts `count` of this program with `arguments` each. Called while this process has one thread.
  static absl::StatusOr<WorkerProcesses> Start(const std::vector<std::string>& arguments, int count);
  WorkerProcesses() = default;
  WorkerProcesses(WorkerProcesses&&) = default;
  WorkerProcesses& operator=(WorkerProcesses&&) = default;
  ~WorkerProcesses();

  // An error when one has ended in another way than it should: it says how.
  absl::Status Check();
  // Until all have ended.
  absl::Status Wait();

 private:
  absl::Status Reap(pid_t& pid, bool wait);
  std::vector<pid_t> running_;
};

}  // namespace llmctl::data
