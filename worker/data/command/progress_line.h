// Progress of a long run on stderr: a line for each stage that is rewritten on a terminal, a line now and then
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/base/mutex.h"
#include "worker/data/pipeline/pipeline.h"

namespace llmctl::data {

class ProgressLine : public Pipeline::Observer {
 public:
  // `terminal`: whether stderr is one.
  explicit ProgressLine(bool terminal);
  ~ProgressLine() override;

  void Begin(int stage, absl::string_view name, const Stage& made, const StageProgress& progress) override;
  absl::Status End(int stage, bool done) override;
  absl::Status Check() override { return absl::OkStatus(); }

  // Since construction.
  absl::Duration Elapsed() const;

 private:
  void Stop();
  void ShowUntilEnd();
  void Print(bool last);

  const bool terminal_;
  const absl::Duration started_;  // monotonic
  // Of the stage that runs.
  std::string name_;
  std::string unit_;
  int64_t amount_ = 0;
  const StageProgress* progress_ = nullptr;
  absl::Duration stage_started_;
  bool printed_ = false;
  std::thread shower_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// "read and clean  40.2 % of 1024.0 MB  118.2 MB/s  about 5s left"
std::string ProgressText(absl::string_view name, absl::string_view unit, int64_t done, int64_t amount,
                         absl::Duration elapsed);

}  // namespace llmctl::data
