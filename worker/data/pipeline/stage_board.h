// Where the processes of one run see which tasks are taken and done: a page of memory that they share.
//
// Every process goes through the same stages in the same order, takes tasks by counting up and waits at the end of a
// stage for the others. Nothing in it outlives the run: what is done lies in files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/pipeline/run_stage.h"
#include "worker/data/pipeline/stage.h"

namespace llmctl::data {

class StageBoard {
 public:
  static constexpr int kStagesMax = 64;

  // A new one; fd() is inherited by the programs that this one starts.
  static absl::StatusOr<std::unique_ptr<StageBoard>> Create();
  // That of the process that started this one.
  static absl::StatusOr<std::unique_ptr<StageBoard>> Join(int fd);
  ~StageBoard();
  StageBoard(const StageBoard&) = delete;
  StageBoard& operator=(const StageBoard&) = delete;

  int fd() const { return fd_; }
  StageProgress& progress(int stage) { return page_->stages[stage].progress; }
  // Tasks 0 to `tasks` - 1 of a stage, each to be taken by one of the processes.
  std::unique_ptr<TaskList> Tasks(int stage, int tasks);
  bool IsDone(int stage, int tasks) const { return page_->stages[stage].done.load() >= tasks; }

  // Nobody takes another task afterwards.
  void Fail() { page_->failed = true; }
  bool failed() const { return page_->failed; }

 private:
  struct StageState {
    std::atomic<int> next = 0;
    std::atomic<int> done = 0;
    StageProgress progress;
  };
  struct Page {
    std::atomic<bool> failed = false;
    StageState stages[kStagesMax];
  };
  class SharedTasks;

  StageBoard(int fd, Page* page) : fd_(fd), page_(page) {}
  static absl::StatusOr<Page*> Map(int fd);

  const int fd_;
  Page* const page_;
};

}  // namespace llmctl::data
