// How a run shows where it is: a line per step for people, the curves file for plots, messages for the control
// plane.
//
// Curves are kept for ever, a file per attempt and generation, written by rank 0:
//   <checkpoint.directory>/curves/a<attempt>-g<generation>.jsonl
// one JSON object a line, with the Unix time at which the step was done. Numbers have 17 digits, so that two runs can
// be compared to the bit; what is not finite is a string ("nan"). A curve that cannot be written is said once, costs
// nothing else, and is made up for when it can be written again (curve_file.h).
#pragma once

#include <optional>
#include <string>

#include "worker/contract/trainer_config.h"
#include "worker/trainer/checkpoints.h"
#include "worker/trainer/control.h"
#include "worker/trainer/curve_file.h"
#include "worker/trainer/step.h"

namespace llmctl::trainer {

// "step 120/600 loss 2.1034 lr 9.1e-04 gnorm 0.84 11.2k tok/s eta 0:43"
std::string StepLine(const contract::Progress& progress, double eta_seconds);

class ProgressReporter {
 public:
  // `rank` 0 writes curves. All arguments outlive the reporter.
  ProgressReporter(const contract::TrainerConfig& config, const GenerationId& generation, int rank, Control& control,
                   const Log& log);
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

  // `step` steps are done, the last one with `result`.
  void Step(int64_t step, const StepResult& result, double seconds);
  void Validation(int64_t step, double loss);

 private:
  void AppendCurve(const std::string& line);

  const int64_t steps_;
  Control& control_;
  const Log& log_;
  std::optional<CurveFile> curves_;  // rank 0
  bool curves_wait_ = false;
  double usual_seconds_ = 0;  // of a step, smoothed
  contract::Progress last_;
};

}  // namespace llmctl::trainer
