// The process that tests this host: `llm-trainer preflight` (listed as llm-preflight), started, listened to, and killed
// when ranks come.
//
// A process that hangs where no signal reaches it (a dead disk is what the test looks for) is reported like any other
// failure, and left to a thread that waits for it, for ever if need be: nobody else does, neither the next run nor the
// end of the agent. Thread-safe; nothing here blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

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
    // Seconds of work, at the lowest priority on a host that may be busy with other things. A device that hangs, hangs
    // for longer.
    absl::Duration patience = absl::Minutes(10);
  };
  // `done` is called from any thread, once for each Begin(), and not after the end of this object.
  PreflightRun(Options options, std::function<void(PreflightFinished)> done);
  ~PreflightRun();
  PreflightRun(const PreflightRun&) = delete;
  PreflightRun& operator=(const PreflightRun&) = delete;

  // The one before has been reported.
  void Begin();
  void Cancel();

 private:
  class Child;
  absl::StatusOr<std::shared_ptr<Child>> Start() const;

  const Options options_;
  const std::function<void(PreflightFinished)> done_;
  std::shared_ptr<Child> child_;  // the newest
};

}  // namespace llmctl::agent
