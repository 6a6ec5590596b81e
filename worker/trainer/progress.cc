#include "worker/trainer/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/instant.h"

namespace llmctl::trainer {
namespace {

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  return absl::StrFormat("%.17g", value);
}

std::string Compact(double value) {
  if (value >= 1e6) return absl::StrFormat("%.1fM", value / 1e6);
  if (value >= 1e3) return absl::StrFormat("%.1fk", value / 1e3);
  return absl::StrFormat("%.0f", value);
}

std::string ClockText(double seconds) {
  int64_t total = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  if (total < 3600) return absl::StrFormat("%d:%02d", total / 60, total % 60);
  return absl::StrFormat("%d:%02d:%02d", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace

std::string StepLine(const contract::Progress& progress, double eta_seconds) {
  return absl::StrFormat("step %d/%d loss %.4f lr %.1e gnorm %.2f %s tok/s eta %s", progress.step, progress.steps,
                         progress.loss, progress.learning_rate, progress.gradient_norm,
                         Compact(progress.tokens_per_second), ClockText(eta_seconds));
}

ProgressReporter::ProgressReporter(const contract::TrainerConfig& config, const GenerationId& generation, int rank,
                                   Control& control, const Log& log)
    : steps_(config.training.steps), control_(control), log_(log) {
  if (rank != 0) return;
  curves_.emplace(absl::StrCat(config.checkpoint.directory, "/curves/a", generation.attempt, "-g",
                               generation.generation, ".jsonl"));
}

void ProgressReporter::AppendCurve(const std::string& line) {
  if (!curves_.has_value()) return;
  absl::Status appended = curves_->Append(line);
  if (appended.ok() && curves_wait_) {
    log_.line(absl::StrCat("curves are written again: ", curves_->path(), ", ", curves_->lost_lines(), " lines lost"));
  } else if (!appended.ok() && !curves_wait_) {
    log_.alarm(absl::StrCat("CURVES WAIT in memory (the run goes on): ", appended.message()));
  }
  curves_wait_ = !appended.ok();
}

void ProgressReporter::Step(int64_t step, const StepResult& result, double seconds) {
  usual_seconds_ = usual_seconds_ == 0 ? seconds : 0.9 * usual_seconds_ + 0.1 * seconds;
  last_.step = step;
  last_.steps = steps_;
  last_.loss = result.loss;
  last_.learning_rate = result.learning_rate;
  last_.gradient_norm = result.gradient_norm;
  last_.tokens_per_second = static_cast<double>(result.tokens) / std::max(seconds, 1e-9);
  last_.tokens = result.tokens;
  last_.step_seconds = seconds;
  control_.Report(last_);
  log_.line(StepLine(last_, usual_seconds_ * static_cast<double>(steps_ - step)));
  AppendCurve(absl::StrCat("{\"step\":", step, ",\"loss\":", JsonNumber(result.loss),
                           ",\"lr\":", JsonNumber(result.learning_rate),
                           ",\"grad_norm\":", JsonNumber(result.gradient_norm), ",\"tokens\":", result.tokens,
                           ",\"tokens_per_second\":", JsonNumber(last_.tokens_per_second),
                           ",\"step_seconds\":", JsonNumber(seconds),
                           ",\"data_wait_seconds\":", JsonNumber(result.data_wait_seconds), ",\"time\":",
                           absl::StrFormat("%.6f", static_cast<double>(absl::ToUnixMicros(Now().wall)) / 1e6), "}\n"));
}

void ProgressReporter::Validation(int64_t step, double loss) {
  last_.step = step;
  last_.steps = steps_;
  last_.validation_loss = loss;
  last_.validation_step = step;
  control_.Report(last_);
  log_.line(absl::StrFormat("validation after step %d: loss %.4f", step, loss));
  AppendCurve(absl::StrCat("{\"step\":", step, ",\"validation_loss\":", JsonNumber(loss), "}\n"));
}

}  // namespace llmctl::trainer
