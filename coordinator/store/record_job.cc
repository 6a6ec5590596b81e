#include "coordinator/store/record_job.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "coordinator/store/json_text.h"
#include "coordinator/store/record_fields.h"

namespace llmctl::store {
namespace {

constexpr int kVersion = 1;

JsonText EncodeRequirements(const JobRequirements& r) {
  return {{"workers_min", r.workers_min},
          {"workers_max", r.workers_max},
          {"devices_per_worker", r.devices_per_worker},
          {"data_parallel", r.data_parallel},
          {"global_batch_size", r.global_batch_size},
          {"micro_batch_size", r.micro_batch_size},
          {"priority", r.priority},
          {"max_restarts", r.max_restarts},
          {"max_attempts_without_progress", r.max_attempts_without_progress},
          {"time_limit", EncodeDuration(r.time_limit)},
          {"hang_after", EncodeDuration(r.hang_after)},
          {"checkpoint_directory", r.checkpoint_directory},
          {"dataset", r.dataset},
          {"keep_last", r.keep_last}};
}

absl::Status DecodeRequirements(const Json& object, const std::string& what, JobRequirements& r) {
  FieldReader fields(object, what);
  fields.Read("workers_min", r.workers_min);
  fields.Read("workers_max", r.workers_max);
  fields.Read("devices_per_worker", r.devices_per_worker);
  fields.Read("data_parallel", r.data_parallel);
  fields.Read("global_batch_size", r.global_batch_size);
  fields.Read("micro_batch_size", r.micro_batch_size);
  fields.Read("priority", r.priority);
  fields.Read("max_restarts", r.max_restarts);
  fields.Read("max_attempts_without_progress", r.max_attempts_without_progress);
  fields.ReadDuration("time_limit", r.time_limit);
  fields.ReadDuration("hang_after", r.hang_after);
  fields.Read("checkpoint_directory", r.checkpoint_directory);
  fields.Read("dataset", r.dataset);
  fields.Read("keep_last", r.keep_last);
  return fields.status();
}

JsonText EncodeDiagnosis(const Diagnosis& d) {
  return {{"rule", d.rule},
          {"class", FailureClassName(d.failure_class)},
          {"outlook", OutlookName(d.outlook)},
          {"cascade", d.cascade},
          {"retries_most", d.retries_most},
          {"budget", d.budget},
          {"strike", d.strike},
          {"advice", d.advice}};
}

absl::Status DecodeDiagnosis(const Json& object, const std::string& what, Diagnosis& d) {
  FieldReader fields(object, what);
  fields.Read("rule", d.rule);
  fields.ReadEnum("class", FailureClass::kUnknown, FailureClassName, d.failure_class);
  fields.ReadEnum("outlook", Outlook::kNever, OutlookName, d.outlook);
  fields.Read("cascade", d.cascade);
  fields.Read("retries_most", d.retries_most);
  fields.Read("budget", d.budget);
  fields.Read("strike", d.strike);
  fields.Read("advice", d.advice);
  return fields.status();
}

// Records of before the rules had a class only, and others than now.
Diagnosis DiagnosisOfClass(const std::string& name) {
  Diagnosis d;
  d.rule = name;
  if (name == "config" || name == "time-limit") d.outlook = Outlook::kNever;
  if (name == "config" || name == "user" || name == "oom") d.failure_class = FailureClass::kUser;
  if (name == "infrastructure") d.failure_class = FailureClass::kInfrastructure;
  if (name == "time-limit") d.failure_class = FailureClass::kScheduler;
  return d;
}

JsonText EncodeExit(const RankExit& exit) {
  return {{"exit_code", exit.exit_code},
          {"signal", exit.signal},
          {"fatal_class", exit.fatal_class},
          {"fatal_message", exit.fatal_message},
          {"stopped_by_agent", exit.stopped_by_agent},
          {"start_failed", exit.start_failed},
          {"log_tail", exit.log_tail},
          {"kernel_log", exit.kernel_log},
          {"diagnosis", EncodeDiagnosis(exit.diagnosis)}};
}

absl::Status DecodeExit(const Json& object, const std::string& what, RankExit& exit) {
  FieldReader fields(object, what);
  fields.Read("exit_code", exit.exit_code);
  fields.Read("signal", exit.signal);
  fields.Read("fatal_class", exit.fatal_class);
  fields.Read("fatal_message", exit.fatal_message);
  fields.Read("stopped_by_agent", exit.stopped_by_agent);
  fields.Read("start_failed", exit.start_failed);
  fields.Read("log_tail", exit.log_tail);
  fields.Read("kernel_log", exit.kernel_log);
  if (std::optional<Json> diagnosis = fields.Find("diagnosis")) {
    fields.Merge(DecodeDiagnosis(*diagnosis, what, exit.diagnosis));
  }
  return fields.status();
}

const char* StopRequestName(StopRequest stop) {
  switch (stop) {
    case StopRequest::kNone: return "none";
    case StopRequest::kPlain: return "plain";
    case StopRequest::kYield: return "yield";
  }
  return "?";
}

JsonText EncodeNodes(const std::vector<NodeId>& nodes) {
  JsonText out = JsonText::Array();
  for (const NodeId& node : nodes) out.push_back(node.value());
  return out;
}

JsonText EncodeAttempt(const Attempt& attempt) {
  JsonText ranks = JsonText::Array();
  for (const RankState& rank : attempt.ranks) {
    JsonText item = {{"node", rank.node.value()},
                     {"device", rank.device},
                     {"phase", RankPhaseName(rank.phase)},
                     {"pid", rank.pid},
                     {"exit_order", rank.exit_order}};
    if (rank.exit) item.Set("exit", EncodeExit(*rank.exit));
    ranks.push_back(item);
  }
  JsonText out = {{"number", attempt.number},
                  {"generation", attempt.generation},
                  {"ranks", ranks},
                  {"ranks_requested", attempt.ranks_requested},
                  {"unreleased", EncodeNodes(attempt.unreleased)},
                  {"stop", StopRequestName(attempt.stop)},
                  {"stop_reason", attempt.stop_reason},
                  {"start_time", EncodeTime(attempt.start_time)},
                  {"start_checkpoint_step", attempt.start_checkpoint_step},
                  {"trainer_digest", attempt.trainer_digest},
                  {"search_checkpoints", attempt.search_checkpoints}};
  if (attempt.failure) {
    out.Set("failure", {{"diagnosis", EncodeDiagnosis(attempt.failure->diagnosis)},
                        {"text", attempt.failure->text},
                        {"node", attempt.failure->node.value()}});
  }
  return out;
}

absl::Status DecodeRank(const Json& object, const std::string& what, RankState& rank) {
  FieldReader fields(object, what);
  std::string node;
  fields.Read("node", node);
  rank.node = NodeId(node);
  fields.Read("device", rank.device);
  fields.ReadEnum("phase", RankPhase::kExited, RankPhaseName, rank.phase);
  fields.Read("pid", rank.pid);
  fields.Read("exit_order", rank.exit_order);
  if (std::optional<Json> exit = fields.Find("exit")) fields.Merge(DecodeExit(*exit, what, rank.exit.emplace()));
  return fields.status();
}

absl::Status DecodeNode(const Json& item, const std::string& what, std::vector<NodeId>& nodes) {
  std::string_view name;
  if (item.get(name) != simdjson::SUCCESS) {
    return absl::DataLossError(absl::StrCat("stored record of ", what, ": a node is no text"));
  }
  nodes.emplace_back(std::string(name));
  return absl::OkStatus();
}

absl::Status DecodeFailure(const Json& object, const std::string& what, GangFailure& failure) {
  FieldReader fields(object, what);
  std::string old_class;
  fields.Read("class", old_class);
  if (!old_class.empty()) failure.diagnosis = DiagnosisOfClass(old_class);
  if (std::optional<Json> diagnosis = fields.Find("diagnosis")) {
    fields.Merge(DecodeDiagnosis(*diagnosis, what, failure.diagnosis));
  }
  fields.Read("text", failure.text);
  std::string node;
  fields.Read("node", node);
  failure.node = NodeId(node);
  return fields.status();
}

absl::Status DecodeAttempt(const Json& object, const std::string& what, Attempt& attempt) {
  FieldReader fields(object, what);
  fields.Read("number", attempt.number);
  fields.Read("generation", attempt.generation);
  fields.ForEach("ranks", [&](const Json& item) { return DecodeRank(item, what, attempt.ranks.emplace_back()); });
  fields.Read("ranks_requested", attempt.ranks_requested);
  fields.ForEach("unreleased", [&](const Json& item) { return DecodeNode(item, what, attempt.unreleased); });
  fields.ReadEnum("stop", StopRequest::kYield, StopRequestName, attempt.stop);
  fields.Read("stop_reason", attempt.stop_reason);
  fields.ReadTime("start_time", attempt.start_time);
  fields.Read("start_checkpoint_step", attempt.start_checkpoint_step);
  fields.Read("trainer_digest", attempt.trainer_digest);
  fields.Read("search_checkpoints", attempt.search_checkpoints);
  if (std::optional<Json> failure = fields.Find("failure")) {
    fields.Merge(DecodeFailure(*failure, what, attempt.failure.emplace()));
  }
  return fields.status();
}

JsonText EncodePastAttempt(const PastAttempt& past) {
  return {{"number", past.number}, {"generation", past.generation}, {"nodes", EncodeNodes(past.nodes)}};
}

absl::Status DecodePastAttempt(const Json& object, const std::string& what, PastAttempt& past) {
  FieldReader fields(object, what);
  fields.Read("number", past.number);
  fields.Read("generation", past.generation);
  fields.ForEach("nodes", [&](const Json& item) { return DecodeNode(item, what, past.nodes); });
  return fields.status();
}

JsonText EncodeCheckpoint(const CheckpointRecord& checkpoint) {
  return {{"step", checkpoint.step},
          {"attempt", checkpoint.attempt},
          {"generation", checkpoint.generation},
          {"path", checkpoint.path},
          {"manifest_digest", checkpoint.manifest_digest},
          {"next_sample", checkpoint.next_sample},
          {"commit_time", EncodeTime(checkpoint.commit_time)}};
}

absl::Status DecodeCheckpoint(const Json& object, const std::string& what, CheckpointRecord& checkpoint) {
  FieldReader fields(object, what);
  fields.Read("step", checkpoint.step);
  fields.Read("attempt", checkpoint.attempt);
  fields.Read("generation", checkpoint.generation);
  fields.Read("path", checkpoint.path);
  fields.Read("manifest_digest", checkpoint.manifest_digest);
  fields.Read("next_sample", checkpoint.next_sample);
  fields.ReadTime("commit_time", checkpoint.commit_time);
  return fields.status();
}

void DecodeFailureOfJob(FieldReader& fields, const std::string& what, Job& job) {
  std::string old_class;
  fields.Read("failure_class", old_class);
  if (!old_class.empty()) job.failure = DiagnosisOfClass(old_class);
  if (std::optional<Json> diagnosis = fields.Find("failure")) {
    fields.Merge(DecodeDiagnosis(*diagnosis, what, job.failure));
  }
  fields.Read("first_cause", job.first_cause);
  fields.ReadTime("retry_time", job.retry_time);
  fields.Read("user_restarts", job.user_restarts);
  int out_of_memory_restarts = 0;
  fields.Read("out_of_memory_restarts", out_of_memory_restarts);
  if (out_of_memory_restarts > 0) job.limited_retries["memory"] = out_of_memory_restarts;
  fields.Read("limited_retries", job.limited_retries);
  fields.Read("infrastructure_failures", job.infrastructure_failures);
  fields.ReadDuration("backoff", job.backoff);
  auto read_nodes = [&](const char* name, std::vector<NodeId>& nodes) {
    fields.ForEach(name, [&](const Json& item) { return DecodeNode(item, what, nodes); });
  };
  read_nodes("avoided_nodes", job.avoided_nodes);
  read_nodes("accused_nodes", job.accused_nodes);
}

void DecodeProgressOfJob(FieldReader& fields, Job& job) {
  fields.ReadEnum("phase", JobPhase::kCancelled, JobPhaseName, job.phase);
  fields.Read("reason", job.reason);
  fields.Read("cancel_requested", job.cancel_requested);
  fields.Read("cancel_reason", job.cancel_reason);
  fields.Read("time_limit_reached", job.time_limit_reached);
  fields.Read("suspend_requested", job.suspend_requested);
  fields.Read("last_attempt", job.last_attempt);
  fields.Read("last_generation", job.last_generation);
  fields.Read("generation_floor", job.generation_floor);
  fields.Read("quarantined", job.quarantined);
  fields.Read("stand_in", job.stand_in);
  fields.ReadDuration("run_time", job.run_time);
  fields.ReadTime("submit_time", job.submit_time);
  fields.ReadTime("start_time", job.start_time);
  fields.ReadTime("end_time", job.end_time);
  fields.Read("last_event", job.last_event);
}

}  // namespace

std::string EncodeJob(const Job& job) {
  JsonText checkpoints = JsonText::Array();
  for (const CheckpointRecord& checkpoint : job.checkpoints) checkpoints.push_back(EncodeCheckpoint(checkpoint));
  JsonText past_attempts = JsonText::Array();
  for (const PastAttempt& past : job.past_attempts) past_attempts.push_back(EncodePastAttempt(past));
  JsonText out = {{"version", kVersion},
                  {"name", job.name},
                  {"project", job.project},
                  {"labels", job.labels},
                  // Serialized protobuf is not UTF-8.
                  {"spec", absl::Base64Escape(job.spec)},
                  {"requirements", EncodeRequirements(job.requirements)},
                  {"idempotency_key", job.idempotency_key},
                  {"phase", JobPhaseName(job.phase)},
                  {"reason", job.reason},
                  {"failure", EncodeDiagnosis(job.failure)},
                  {"first_cause", job.first_cause},
                  {"retry_time", EncodeTime(job.retry_time)},
                  {"cancel_requested", job.cancel_requested},
                  {"cancel_reason", job.cancel_reason},
                  {"time_limit_reached", job.time_limit_reached},
                  {"suspend_requested", job.suspend_requested},
                  {"last_attempt", job.last_attempt},
                  {"last_generation", job.last_generation},
                  {"generation_floor", job.generation_floor},
                  {"quarantined", job.quarantined},
                  {"stand_in", job.stand_in},
                  {"user_restarts", job.user_restarts},
                  {"limited_retries", job.limited_retries},
                  {"micro_batch_size", job.micro_batch_size},
                  {"infrastructure_failures", job.infrastructure_failures},
                  {"backoff", EncodeDuration(job.backoff)},
                  {"avoided_nodes", EncodeNodes(job.avoided_nodes)},
                  {"accused_nodes", EncodeNodes(job.accused_nodes)},
                  {"past_attempts", past_attempts},
                  {"checkpoints", checkpoints},
                  {"run_time", EncodeDuration(job.run_time)},
                  {"submit_time", EncodeTime(job.submit_time)},
                  {"start_time", EncodeTime(job.start_time)},
                  {"end_time", EncodeTime(job.end_time)},
                  {"last_event", job.last_event}};
  if (job.attempt) out.Set("attempt", EncodeAttempt(*job.attempt));
  return out.text();
}

absl::StatusOr<Job> DecodeJob(const JobId& id, absl::string_view blob) {
  std::string what = absl::StrCat("job ", id.value());
  FieldReader fields(blob, what);
  Job job;
  job.id = id;
  fields.CheckVersion(kVersion);
  fields.Read("name", job.name);
  fields.Read("project", job.project);
  fields.Read("labels", job.labels);
  std::string spec;
  fields.Read("spec", spec);
  if (!absl::Base64Unescape(spec, &job.spec)) fields.Fail("spec", "base64", "something else");
  if (std::optional<Json> requirements = fields.Find("requirements")) {
    fields.Merge(DecodeRequirements(*requirements, what, job.requirements));
  }
  // Records of before it could shrink have none.
  job.micro_batch_size = job.requirements.micro_batch_size;
  fields.Read("micro_batch_size", job.micro_batch_size);
  fields.Read("idempotency_key", job.idempotency_key);
  DecodeProgressOfJob(fields, job);
  DecodeFailureOfJob(fields, what, job);
  if (std::optional<Json> attempt = fields.Find("attempt")) {
    fields.Merge(DecodeAttempt(*attempt, what, job.attempt.emplace()));
  }
  fields.ForEach("past_attempts", [&](const Json& item) {
    return DecodePastAttempt(item, what, job.past_attempts.emplace_back());
  });
  fields.ForEach("checkpoints", [&](const Json& item) {
    return DecodeCheckpoint(item, what, job.checkpoints.emplace_back());
  });
  if (!fields.status().ok()) return fields.status();
  return job;
}

}  // namespace llmctl::store
