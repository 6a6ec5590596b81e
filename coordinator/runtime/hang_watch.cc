#include "coordinator/runtime/hang_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace llmctl::runtime {
namespace {

constexpr absl::Duration kDerivedLeast = absl::Minutes(1);
constexpr double kDerivedFactor = 5;
constexpr double kGivenFactor = 2;
constexpr double kOthersFactor = 5;
constexpr absl::Duration kFirst = absl::Minutes(10);
constexpr double kFirstFactor = 10;
// The core gives up a start after 120 s, with less to say about it (core/deadlines.h).
constexpr absl::Duration kStart = absl::Seconds(100);
// Of pulses: one lost heartbeat and a late one, however often hosts are heard of.
constexpr absl::Duration kFreshLeast = absl::Seconds(5);
constexpr double kFreshHeartbeats = 2.5;

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

}  // namespace

void StepHistory::Add(double seconds) {
  if (!(seconds > 0)) return;
  steps_.push_back(seconds);
  if (steps_.size() > kKept) steps_.pop_front();
}

absl::Duration StepHistory::Percentile(double share) const {
  if (steps_.empty()) return absl::ZeroDuration();
  std::vector<double> sorted(steps_.begin(), steps_.end());
  size_t rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  size_t index = std::clamp<size_t>(rank, 1, sorted.size()) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + index, sorted.end());
  return absl::Seconds(sorted[index]);
}

HangLimits LimitsOf(const StepHistory& steps, absl::Duration hang_after, absl::Duration longest_validation,
                    absl::Duration longest_checkpoint) {
  absl::Duration usual = steps.Percentile(0.99);
  bool given = hang_after > absl::ZeroDuration();
  HangLimits limits;
  limits.step = given ? std::max(hang_after, kGivenFactor * usual) : std::max(kDerivedLeast, kDerivedFactor * usual);
  limits.first = given ? std::max(limits.step, kFirstFactor * hang_after) : std::max(limits.step, kFirst);
  if (steps.empty()) limits.step = limits.first;
  auto later = [&](absl::Duration longest) {
    return longest > absl::ZeroDuration() ? std::max(limits.step, kOthersFactor * longest) : absl::ZeroDuration();
  };
  limits.validation = later(longest_validation);
  limits.checkpoint = later(longest_checkpoint);
  return limits;
}

Patience PatienceWith(const RankPulse& pulse, const HangLimits& limits) {
  absl::Duration activity = absl::Seconds(pulse.activity_seconds);
  auto first_or = [&](absl::Duration later) { return later > absl::ZeroDuration() ? later : limits.first; };
  if (pulse.phase == "commit") return {activity, absl::InfiniteDuration()};
  if (pulse.activity == "starting") return {activity, std::min(kStart, limits.first)};
  if (pulse.activity == "validation") return {activity, first_or(limits.validation)};
  if (pulse.activity == "checkpoint") return {activity, first_or(limits.checkpoint)};
  // After a validation or a checkpoint the step begins anew.
  absl::Duration step = std::min(absl::Seconds(pulse.step_seconds), activity);
  return {step, pulse.steps_here == 0 ? limits.first : limits.step};
}

HangWatch::HangWatch(absl::Duration heartbeats) : fresh_(std::max(kFreshLeast, kFreshHeartbeats * heartbeats)) {}

HangWatch::Job& HangWatch::Of(const GenerationId& generation, Instant now) {
  Job& job = jobs_[generation.job];
  if (generation.generation > job.generation) {
    job.generation = generation.generation;
    job.since = now;
    job.heard = now;
    job.ranks.clear();
    job.suspected = false;
  }
  return job;
}

void HangWatch::AddStep(const GenerationId& generation, double seconds) {
  auto job = jobs_.find(generation.job);
  if (job != jobs_.end() && job->second.generation == generation.generation) job->second.steps.Add(seconds);
}

std::optional<HangWatch::Suspicion> HangWatch::Observe(const std::vector<RankPulse>& pulses,
                                                       const JobFacts& facts, Instant now) {
  if (pulses.empty()) return std::nullopt;
  const GenerationId& generation = pulses.front().generation;
  Job& job = Of(generation, now);
  if (generation.generation < job.generation) return std::nullopt;
  if (now - job.heard > fresh_) job.since = now;
  job.heard = now;
  for (const RankPulse& pulse : pulses) {
    job.ranks[pulse.rank] = {pulse, now};
    job.longest_validation = std::max(job.longest_validation, absl::Seconds(pulse.longest_validation_seconds));
    job.longest_checkpoint = std::max(job.longest_checkpoint, absl::Seconds(pulse.longest_checkpoint_seconds));
  }
  if (job.suspected) return std::nullopt;

  HangLimits limits = LimitsOf(job.steps, facts.hang_after, job.longest_validation, job.longest_checkpoint);
  Suspicion suspicion = {.generation = generation};
  Patience tightest = {.age = absl::InfiniteDuration(), .limit = absl::ZeroDuration()};
  for (const auto& [rank, seen] : job.ranks) {
    if (facts.ended.contains(rank)) continue;
    suspicion.step = std::max(suspicion.step, seen.pulse.step);
    suspicion.activities[rank] = seen.pulse.activity;
    Patience patience = PatienceWith(seen.pulse, limits);
    patience.age = std::min(patience.age, now - job.since);
    if (now - seen.at > fresh_ || patience.age <= patience.limit) return std::nullopt;
    if (patience.age < tightest.age) tightest = patience;
  }
  if (tightest.age == absl::InfiniteDuration()) return std::nullopt;  // all have ended
  job.suspected = true;
  suspicion.text = absl::StrCat("no progress after step ", suspicion.step, " for ", Seconds(tightest.age), ", ",
                                Seconds(tightest.limit), " are allowed");
  if (!job.steps.empty()) {
    absl::StrAppend(&suspicion.text, " (its steps take ", Seconds(job.steps.Percentile(0.5)), ", 99 % of them at most ",
                    Seconds(job.steps.Percentile(0.99)), ")");
  }
  return suspicion;
}

void HangWatch::Dismiss(const GenerationId& generation, Instant now) {
  auto job = jobs_.find(generation.job);
  if (job == jobs_.end() || job->second.generation != generation.generation) return;
  job->second.suspected = false;
  job->second.since = now;
}

}  // namespace llmctl::runtime
