#include "client/output/progress_view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/output/figures.h"
#include "client/output/json_view.h"

namespace llmctl::client {
namespace {

constexpr char kEraseLine[] = "\r\033[K";

std::string Bar(const v1::Progress& progress) {
  constexpr int kCells = 20;
  if (progress.steps() <= 0) return "";
  int done = static_cast<int>(std::clamp<int64_t>(progress.step() * kCells / progress.steps(), 0, kCells));
  return absl::StrCat("[", std::string(done, '='), std::string(kCells - done, ' '), "] ");
}

std::string Headline(const v1::Job& job) {
  return absl::StrCat(job.id(), " ", job.name(), " ", PhaseName(job.phase()),
                      job.attempt() > 1 ? absl::StrCat(" (attempt ", job.attempt(), ")") : "");
}

std::string PhaseLine(const v1::Job& job) {
  std::string nodes;
  if (job.phase() == v1::JOB_PHASE_RUNNING && job.ranks_size() > 0) {
    absl::StrAppend(&nodes, " with ", job.ranks_size(), job.ranks_size() == 1 ? " rank" : " ranks");
  }
  return absl::StrCat(Headline(job), nodes, job.reason().empty() ? "" : ": ", job.reason());
}

}  // namespace

void ProgressView::Show(const v1::Job& job, Instant now) {
  ShowChanges(job);
  if (options_.terminal) {
    Redraw(job);
  } else {
    bool has_news = job.progress().step() != shown_.progress().step();
    if (has_news && now.monotonic - last_line_ >= options_.line_interval) {
      Line(absl::StrCat(job.id(), " ", ProgressText(job)));
      last_line_ = now.monotonic;
      *shown_.mutable_progress() = job.progress();
    }
  }
  v1::Progress last_shown = shown_.progress();
  shown_ = job;
  if (!options_.terminal) *shown_.mutable_progress() = last_shown;
  out_.flush();
}

void ProgressView::ShowChanges(const v1::Job& job) {
  bool moved = job.phase() != shown_.phase() || job.attempt() != shown_.attempt() || job.reason() != shown_.reason();
  if (moved) Line(PhaseLine(job));
  bool first_look = shown_.id().empty();
  if (!first_look && job.checkpoint().path() != shown_.checkpoint().path()) {
    Line(absl::StrCat(job.id(), " checkpoint of step ", job.checkpoint().step(), " committed: ",
                      job.checkpoint().path()));
  }
}

void ProgressView::Redraw(const v1::Job& job) {
  if (HasEnded(job.phase())) return;
  std::string state = absl::StrCat(job.id(), " ", PhaseName(job.phase()), "  ");
  std::string figures = ProgressText(job), bar = Bar(job.progress());
  // A line that wraps cannot be redrawn; the figures are worth more than the bar.
  size_t width = std::max(options_.columns - 1, 1);
  if (state.size() + bar.size() + figures.size() > width) bar.clear();
  std::string text = absl::StrCat(state, bar, figures).substr(0, width);
  out_ << kEraseLine << text;
  redrawn_ = true;
}

void ProgressView::Note(const std::string& text) {
  Line(text);
  out_.flush();
}

void ProgressView::Finish() {
  if (redrawn_) out_ << kEraseLine;
  redrawn_ = false;
  out_.flush();
}

void ProgressView::Line(const std::string& text) {
  if (redrawn_) out_ << kEraseLine;
  redrawn_ = false;
  out_ << text << "\n";
}

std::string ProgressText(const v1::Job& job) {
  const v1::Progress& progress = job.progress();
  if (progress.step() <= 0) return "";
  std::string out = absl::StrFormat("step %d/%d  loss %s", progress.step(), progress.steps(),
                                    FormatLoss(progress.loss()));
  if (progress.validation_step() > 0) absl::StrAppend(&out, "  val ", FormatLoss(progress.validation_loss()));
  absl::StrAppend(&out, "  ", HumanCount(progress.tokens_per_second()), " tok/s");
  bool estimated = std::isfinite(progress.eta_seconds()) && progress.eta_seconds() > 0;
  if (estimated) absl::StrAppend(&out, "  ETA ", HumanDuration(absl::Seconds(progress.eta_seconds())));
  return out;
}

std::string PhaseName(v1::JobPhase phase) {
  const google::protobuf::EnumValueDescriptor* value = v1::JobPhase_descriptor()->FindValueByNumber(phase);
  // A newer coordinator may know more phases.
  return value == nullptr ? absl::StrCat("phase-", static_cast<int>(phase)) : ShortName(*value);
}

bool HasEnded(v1::JobPhase phase) {
  return phase == v1::JOB_PHASE_SUCCEEDED || phase == v1::JOB_PHASE_FAILED || phase == v1::JOB_PHASE_CANCELLED;
}

}  // namespace llmctl::client
