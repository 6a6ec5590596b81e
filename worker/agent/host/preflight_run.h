// The process that tests this host: `llm-trainer preflight` (listed as llm-preflight), started, listened to, and killed
// when ranks come.
//
// Thread-safe; nothing here blocks but the destructor, for as long as a killed process takes to go.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

#include "common/base/mutex.h"
#include "common/base/unique_fd.h"
#include "worker/agent/core/event.h"

namespace llmctl::agent {

class PreflightRun {
 public:
  struct Options {
    std::string trainer_program;
    std::string directory;  // on the disk to be tested
    int devices = 1;
    std::string device_kind;
    std::vector<std::string> environment;
  };
  // `done` is called from another thread, once for each Begin().
  PreflightRun(Options options, std::function<void(PreflightFinished)> done);
  ~PreflightRun();
  PreflightRun(const PreflightRun&) = delete;
  PreflightRun& operator=(const PreflightRun&) = delete;

  // The one before has ended.
  void Begin();
  void Cancel();

 private:
  struct Child {
    pid_t pid = 0;
    UniqueFd output;
  };
  absl::StatusOr<Child> Start();
  PreflightFinished Follow(const Child& child);
  void Kill();

  const Options options_;
  const std::function<void(PreflightFinished)> done_;

  Mutex mutex_;
  UniqueFd process_ ABSL_GUARDED_BY(mutex_);  // pidfd of the one that runs
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace llmctl::agent
