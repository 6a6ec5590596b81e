#include "worker/data/pipeline/run_stage.h"

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

class FirstError {
 public:
  void Keep(absl::Status status) {
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  absl::Status status() {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

absl::Status WorkAll(StageWorker& worker, TaskList& tasks, FirstError& error) {
  while (error.status().ok()) {
    std::optional<int> task = tasks.Take();
    if (!task) break;
    LLM_RETURN_IF_ERROR(worker.Run(*task));
    tasks.Done(*task);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunStage(Stage& stage, const ProcessLimits& limits, TaskList& tasks, StageProgress& progress) {
  // A worker for each thread, if there are tasks enough that none is idle for long at the end.
  constexpr int kTasksPerThread = 4;
  bool together = stage.wants_threads() && stage.tasks() < kTasksPerThread * limits.threads;
  int workers = together ? 1 : limits.threads;
  int threads = together ? limits.threads : 1;
  FirstError error;
  auto work = [&] {
    absl::StatusOr<std::unique_ptr<StageWorker>> worker =
        stage.MakeWorker(threads, limits.memory_bytes / workers, progress);
    error.Keep(worker.ok() ? WorkAll(**worker, tasks, error) : worker.status());
  };
  std::vector<std::thread> others;
  for (int i = 1; i < workers; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return error.status();
}

}  // namespace llmctl::data
