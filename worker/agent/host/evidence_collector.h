// EvidenceCollector: runs llm-evidence, one at a time, so that nothing of what it does (reading symbol tables, packing)
// is done in the agent, or at the expense of the next attempt.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "worker/agent/host/work_queue.h"

namespace llmctl::agent {

class EvidenceCollector {
 public:
  // `program` empty: there is none, and nothing is collected.
  explicit EvidenceCollector(std::string program) : program_(std::move(program)) {}
  // What runs is killed.
  ~EvidenceCollector();
  EvidenceCollector(const EvidenceCollector&) = delete;
  EvidenceCollector& operator=(const EvidenceCollector&) = delete;

  void Collect(std::vector<std::string> arguments);

 private:
  void Run(const std::vector<std::string>& arguments);

  const std::string program_;
  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  WorkQueue work_;  // last: its jobs use the rest
};

}  // namespace llmctl::agent
