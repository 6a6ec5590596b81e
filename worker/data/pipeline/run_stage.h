// Runs the tasks of a stage on the threads of this process.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "worker/data/pipeline/stage.h"

namespace llmctl::data {

// What one process may use.
struct ProcessLimits {
  int threads = 1;
  int64_t memory_bytes = 0;  // for records and buffers that can be larger or smaller
};

// Where tasks come from and go to. Called from any of the threads.
class TaskList {
 public:
  virtual ~TaskList() = default;
  // The next task; nothing when there is none left.
  virtual std::optional<int> Take() = 0;
  virtual void Done(int task) = 0;
};

// The first error ends it: tasks that were taken are finished, no other is.
absl::Status RunStage(Stage& stage, const ProcessLimits& limits, TaskList& tasks, StageProgress& progress);

}  // namespace llmctl::data
