// Control over the shim.
#pragma once

#include <atomic>
#include <optional>

#include "worker/trainer/control.h"
#include "worker/trainer/shim_link.h"

namespace llmctl::trainer {

class ShimControl : public Control {
 public:
  // `terminated` becomes true on SIGTERM, which asks for the same as Yield.
  ShimControl(ShimLink& link, const std::atomic<bool>& terminated) : link_(link), terminated_(terminated) {}

  // Waits for the first assignment. Unavailable if the link ends or the run is halted before it came.
  absl::StatusOr<contract::Assignment> WaitForAssignment();

  void Ready(int64_t step) override { link_.Send(contract::Ready{.step = step}); }
  void Report(const contract::Progress& progress) override { link_.Send(progress); }
  void Commit(const contract::CheckpointCommit& commit) override { link_.Send(commit); }
  Requests Take() override;
  void Wait(absl::Duration timeout) override { link_.Wait(timeout); }

 private:
  void Sort(contract::Message message, Requests& requests);

  ShimLink& link_;
  const std::atomic<bool>& terminated_;
  std::optional<contract::Assignment> assignment_;  // not yet asked for
  bool assigned_ = false;
};

}  // namespace llmctl::trainer
