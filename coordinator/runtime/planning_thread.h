// PlanningThread: runs placement off the core's thread.
//
// One snapshot at a time; the core's thread takes a fresh one when the plan before has come back, so any number
// of requests meanwhile cost one more plan.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"

#include "common/base/mutex.h"
#include "coordinator/model/plan.h"
#include "coordinator/placement/placement.h"

namespace llmctl::runtime {

class PlanningThread {
 public:
  // Runs on the planning thread.
  using Done = std::function<void(Plan plan, absl::Duration took)>;

  explicit PlanningThread(Done done);
  ~PlanningThread();
  PlanningThread(const PlanningThread&) = delete;
  PlanningThread& operator=(const PlanningThread&) = delete;

  // The one before must be done.
  void MakePlan(placement::Snapshot snapshot);

 private:
  void Run();

  const Done done_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<placement::Snapshot> next_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: runs on the fields above
};

}  // namespace llmctl::runtime
