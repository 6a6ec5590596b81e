// How a job goes, while somebody watches: one line that is redrawn on a terminal, plain lines from time to time
// anywhere else. What a person must not miss (a new phase, a new attempt, a checkpoint) is a line of its own in
// both.
#pragma once

#include <ostream>
#include <string>

#include "absl/time/time.h"

#include "common/base/instant.h"
#include "llmctl/v1/jobs.pb.h"

namespace llmctl::client {

class ProgressView {
 public:
  struct Options {
    bool terminal = false;
    int columns = 80;
    absl::Duration line_interval = absl::Seconds(5);  // where it is no terminal
  };

  // `out` must outlive the view.
  ProgressView(std::ostream& out, const Options& options) : out_(out), options_(options) {}
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void Show(const v1::Job& job, Instant now);
  // Something about the watching itself, such as a lost connection.
  void Note(const std::string& text);
  // Leaves the terminal on a new line.
  void Finish();

 private:
  void Line(const std::string& text);
  void ShowChanges(const v1::Job& job);
  void Redraw(const v1::Job& job);

  std::ostream& out_;
  const Options options_;
  v1::Job shown_;
  bool redrawn_ = false;  // the terminal's cursor is behind a line of ours
  absl::Duration last_line_ = -absl::InfiniteDuration();
};

// "step 120/600  loss 2.3456  val 2.4567  12.3k tok/s  ETA 1m20s"; empty before the first step.
std::string ProgressText(const v1::Job& job);

// "queued", "running", ...
std::string PhaseName(v1::JobPhase phase);

// The job will not change any more.
bool HasEnded(v1::JobPhase phase);

}  // namespace llmctl::client
