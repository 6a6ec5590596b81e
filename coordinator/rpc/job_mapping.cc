#include "coordinator/rpc/job_mapping.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::rpc {
namespace {

// Map entries in the order of their keys, so that equal specifications are equal bytes.
std::string SerializeDeterministically(const google::protobuf::Message& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

JobRequirements ToRequirements(const v1::JobSpec& spec) {
  JobRequirements r;
  r.workers_min = spec.resources().workers().min();
  r.workers_max = spec.resources().workers().max();
  r.devices_per_worker = spec.resources().devices_per_worker();
  r.data_parallel = spec.parallelism().data();
  r.global_batch_size = spec.training().global_batch_size();
  r.micro_batch_size = spec.training().micro_batch_size();
  r.priority = spec.priority();
  r.max_restarts = spec.fault_tolerance().max_restarts();
  r.max_attempts_without_progress = spec.fault_tolerance().max_attempts_without_progress();
  if (!spec.time_limit().empty()) {
    CHECK(absl::ParseDuration(spec.time_limit(), &r.time_limit)) << "validated before: " << spec.time_limit();
  }
  const std::string& hang_after = spec.fault_tolerance().hang_after();
  if (!hang_after.empty()) CHECK(absl::ParseDuration(hang_after, &r.hang_after)) << "validated before: " << hang_after;
  r.checkpoint_directory = spec.checkpoint().directory();
  r.dataset = spec.data().dataset();
  r.keep_last = spec.checkpoint().keep_last();
  return r;
}

std::string ExitReason(const RankExit& exit) {
  if (exit.start_failed) return absl::StrCat("could not be started: ", exit.fatal_message);
  if (!exit.fatal_message.empty()) return absl::StrCat(exit.fatal_class, ": ", exit.fatal_message);
  if (exit.signal != 0) return absl::StrCat("killed by signal ", exit.signal);
  if (exit.stopped_by_agent) return "stopped";
  return exit.exit_code == 0 ? "" : absl::StrCat("exited with code ", exit.exit_code);
}

void AddRanks(const Attempt& attempt, v1::Job& out) {
  for (size_t i = 0; i < attempt.ranks.size(); ++i) {
    const RankState& rank = attempt.ranks[i];
    v1::Rank* to = out.add_ranks();
    to->set_rank(static_cast<int>(i));
    to->set_node(rank.node.value());
    to->set_device(rank.device);
    to->set_phase(RankPhaseName(rank.phase));
    to->set_pid(rank.pid);
    if (rank.exit) {
      to->set_exit_code(rank.exit->signal != 0 ? 128 + rank.exit->signal : rank.exit->exit_code);
      to->set_exit_reason(ExitReason(*rank.exit));
    }
  }
}

void AddFailure(const Job& job, v1::Job& out) {
  bool cancelled = job.phase == JobPhase::kCancelled;
  out.set_failure_class(cancelled ? "cancelled" : FailureClassName(job.failure.failure_class));
  if (!job.failure.rule.empty()) {
    out.set_failure_rule(job.failure.rule);
    out.set_failure_outlook(OutlookName(job.failure.outlook));
    out.set_first_cause(job.first_cause);
  }
  if (job.retry_time != absl::InfinitePast()) *out.mutable_retry_time() = ToTimestamp(job.retry_time);
  out.set_restarts_left(std::max(0, job.requirements.max_restarts - job.user_restarts));
  // The one that reaches the cap is final.
  int failures_most = job.requirements.max_attempts_without_progress - 1;
  out.set_failures_left(std::max(0, failures_most - job.infrastructure_failures));
}

v1::Progress ToProto(const runtime::Progress& p) {
  v1::Progress out;
  out.set_step(p.step);
  out.set_steps(p.steps);
  out.set_loss(p.loss);
  out.set_learning_rate(p.learning_rate);
  out.set_gradient_norm(p.gradient_norm);
  out.set_tokens_per_second(p.tokens_per_second);
  out.set_validation_loss(p.validation_loss);
  out.set_validation_step(p.validation_step);
  out.set_eta_seconds(p.eta_seconds);
  out.set_tokens(p.tokens);
  return out;
}

}  // namespace

void AddLiveRanks(const std::map<int, runtime::LiveRank>& live, v1::Job& job) {
  for (v1::Rank& rank : *job.mutable_ranks()) {
    auto seen = live.find(rank.rank());
    if (seen == live.end() || rank.has_exit_code()) continue;
    rank.set_doing(seen->second.doing);
    rank.set_slowness(seen->second.speed.slowness);
    rank.set_straggler(seen->second.speed.straggler);
  }
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp out;
  int64_t seconds = absl::ToUnixSeconds(time);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return out;
}

core::JobSubmitted ToSubmission(const v1::JobSpec& spec, const std::string& idempotency_key) {
  core::JobSubmitted submitted;
  submitted.name = spec.metadata().name();
  submitted.project = spec.metadata().project();
  submitted.labels = {spec.metadata().labels().begin(), spec.metadata().labels().end()};
  submitted.spec = SerializeDeterministically(spec);
  submitted.requirements = ToRequirements(spec);
  submitted.idempotency_key = idempotency_key;
  return submitted;
}

v1::JobPhase ToProto(JobPhase phase) {
  switch (phase) {
    case JobPhase::kQueued: return v1::JOB_PHASE_QUEUED;
    case JobPhase::kStarting: return v1::JOB_PHASE_STARTING;
    case JobPhase::kRunning: return v1::JOB_PHASE_RUNNING;
    case JobPhase::kStopping: return v1::JOB_PHASE_STOPPING;
    case JobPhase::kBackoff: return v1::JOB_PHASE_BACKOFF;
    case JobPhase::kSuspended: return v1::JOB_PHASE_SUSPENDED;
    case JobPhase::kSucceeded: return v1::JOB_PHASE_SUCCEEDED;
    case JobPhase::kFailed: return v1::JOB_PHASE_FAILED;
    case JobPhase::kCancelled: return v1::JOB_PHASE_CANCELLED;
  }
  return v1::JOB_PHASE_UNSPECIFIED;
}

v1::CommittedCheckpointView ToProto(const CheckpointRecord& checkpoint) {
  v1::CommittedCheckpointView out;
  out.set_step(checkpoint.step);
  out.set_attempt(checkpoint.attempt);
  out.set_generation(checkpoint.generation);
  out.set_path(checkpoint.path);
  out.set_manifest_digest(checkpoint.manifest_digest);
  *out.mutable_commit_time() = ToTimestamp(checkpoint.commit_time);
  return out;
}

v1::JobEvent ToProto(const JobEventRecord& event) {
  v1::JobEvent out;
  out.set_sequence(event.sequence);
  *out.mutable_time() = ToTimestamp(event.time);
  out.set_attempt(event.attempt);
  out.set_generation(event.generation);
  out.set_kind(event.kind);
  out.set_text(event.text);
  return out;
}

v1::Job ToProto(const runtime::JobView& view, const std::optional<runtime::Progress>& progress) {
  const Job& job = *view.job;
  v1::Job out;
  out.set_id(job.id.value());
  out.set_name(job.name);
  out.set_project(job.project);
  out.mutable_labels()->insert(job.labels.begin(), job.labels.end());
  out.set_phase(ToProto(job.phase));
  // While queued, what it waits for says more than why it came back to the queue.
  out.set_reason(job.phase == JobPhase::kQueued && view.waiting ? *view.waiting : job.reason);
  AddFailure(job, out);
  out.set_attempt(job.last_attempt);
  out.set_generation(job.last_generation);
  out.set_priority(job.requirements.priority);
  if (job.submit_time != absl::InfinitePast()) *out.mutable_submit_time() = ToTimestamp(job.submit_time);
  if (job.start_time != absl::InfinitePast()) *out.mutable_start_time() = ToTimestamp(job.start_time);
  if (job.end_time != absl::InfinitePast()) *out.mutable_end_time() = ToTimestamp(job.end_time);
  if (job.attempt) AddRanks(*job.attempt, out);
  if (progress) *out.mutable_progress() = ToProto(*progress);
  if (!job.checkpoints.empty()) *out.mutable_checkpoint() = ToProto(job.checkpoints.back());
  CHECK(out.mutable_spec()->ParseFromString(job.spec)) << "stored specification of job " << job.id;
  out.set_revision(view.revision);
  return out;
}

}  // namespace llmctl::rpc
