// Progress of a long run on stderr: one line that is rewritten on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "worker/data/prepare/prepare.h"

namespace llmctl::data {

class ProgressLine {
 public:
  // `terminal`: whether stderr is one.
  explicit ProgressLine(bool terminal);

  void Show(const PrepareProgress& progress);
  // Ends the line on a terminal.
  void Finish();
  // Since construction.
  absl::Duration Elapsed() const;

 private:
  const bool terminal_;
  const absl::Duration started_;  // monotonic
  absl::Duration shown_;
  bool line_open_ = false;
};

// "412.0 of 1024.0 MB  118.2 MB/s  37211 documents  about 5s left"
std::string ProgressText(const PrepareProgress& progress, absl::Duration elapsed);

}  // namespace llmctl::data
