// Control of a trainer that nobody started for a job: it commits its own checkpoints.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "worker/trainer/control.h"

namespace llmctl::trainer {

class AloneControl : public Control {
 public:
  // Keeps the newest `keep_last` checkpoints of this run. `terminated` becomes true on SIGTERM.
  AloneControl(int keep_last, const std::atomic<bool>& terminated) : keep_last_(keep_last), terminated_(terminated) {}

  void Ready(int64_t) override {}
  void Report(const contract::Progress&) override {}
  void Commit(const contract::CheckpointCommit& commit) override;
  Requests Take() override;
  void Wait(absl::Duration) override {}

 private:
  const int keep_last_;
  const std::atomic<bool>& terminated_;
  std::deque<std::string> committed_;
  std::vector<contract::CheckpointCommitReply> replies_;
};

}  // namespace llmctl::trainer
