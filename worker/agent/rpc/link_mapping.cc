#include "worker/agent/rpc/link_mapping.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "llmctl/v1/worker_link.pb.h"
#include "worker/agent/rpc/job_config.h"

namespace llmctl::agent {
namespace {

void Fill(const GenerationId& id, v1::Generation* out) {
  out->set_job(id.job.value());
  out->set_attempt(id.attempt);
  out->set_generation(id.generation);
}

v1::RankPhase ToProto(RankPhase phase) {
  switch (phase) {
    case RankPhase::kStarting: return v1::RANK_PHASE_STARTING;
    case RankPhase::kRunning: return v1::RANK_PHASE_RUNNING;
    case RankPhase::kExited: return v1::RANK_PHASE_EXITED;
  }
  return v1::RANK_PHASE_UNSPECIFIED;
}

void Fill(const ExitRecord& exit, v1::ExitRecord* out) {
  out->set_exit_code(exit.exit_code);
  out->set_signal(exit.signal);
  out->set_fatal_class(exit.fatal_class);
  out->set_fatal_message(exit.fatal_message);
  out->set_stopped_by_agent(exit.stopped_by_agent);
  out->set_start_failed(exit.start_failed);
  out->set_log_tail(exit.log_tail);
  out->set_kernel_log(exit.kernel_log);
}

void Fill(const Hello& hello, const HostIdentity& identity, v1::Hello* out) {
  out->set_node(identity.node);
  out->set_boot_id(identity.boot_id);
  out->set_incarnation(identity.incarnation);
  out->set_protocol_version(v1::LINK_PROTOCOL_NEWEST);
  out->set_oldest_protocol_version(v1::LINK_PROTOCOL_OLDEST);
  out->set_build_id(identity.build_id);
  out->set_trainer_digest(identity.trainer_digest);
  for (const std::string& name : identity.capabilities) out->add_capabilities(name);
  out->set_fabric_address(identity.fabric_address);
  for (const Device& device : identity.devices) {
    v1::Device* to = out->add_devices();
    to->set_index(device.index);
    to->set_kind(device.kind);
    to->set_model(device.model);
    to->set_uuid(device.uuid);
    to->set_memory_bytes(device.memory_bytes);
  }
  for (const RunningShim& shim : hello.shims) {
    v1::RunningShim* to = out->add_shims();
    Fill(shim.generation, to->mutable_generation());
    to->set_rank(shim.rank);
    to->set_device(shim.device);
    to->set_pid(shim.pid);
    to->set_phase(ToProto(shim.phase));
    if (shim.exit.has_value()) Fill(*shim.exit, to->mutable_exit());
  }
}

void Fill(const Heartbeat& heartbeat, v1::Heartbeat* out) {
  out->set_sequence(heartbeat.sequence);
  out->set_standbys_ready(heartbeat.standbys_ready);
  out->set_standby_memory_bytes(heartbeat.standby_memory_bytes);
}

void Fill(const RankUpdate& update, v1::RankUpdate* out) {
  Fill(update.generation, out->mutable_generation());
  out->set_rank(update.rank);
  out->set_phase(ToProto(update.phase));
  out->set_pid(update.pid);
  if (update.exit.has_value()) Fill(*update.exit, out->mutable_exit());
}

void Fill(const ProgressReport& report, v1::ProgressReport* out) {
  const contract::Progress& progress = report.progress;
  Fill(report.generation, out->mutable_generation());
  out->set_rank(report.rank);
  out->set_step(progress.step);
  out->set_steps(progress.steps);
  out->set_loss(progress.loss);
  out->set_learning_rate(progress.learning_rate);
  out->set_gradient_norm(progress.gradient_norm);
  out->set_tokens_per_second(progress.tokens_per_second);
  out->set_tokens(progress.tokens);
  out->set_step_seconds(progress.step_seconds);
  if (progress.validation_loss.has_value()) out->set_validation_loss(*progress.validation_loss);
  out->set_validation_step(progress.validation_step);
}

void Fill(const StoreCall& call, v1::StoreRequest* out) {
  const contract::StoreRequest& request = call.request;
  Fill(call.generation, out->mutable_generation());
  out->set_request_id(request.request_id);
  switch (request.operation) {
    case contract::StoreOperation::kGet: out->mutable_get()->set_key(request.key); return;
    case contract::StoreOperation::kWait: out->mutable_wait()->set_key(request.key); return;
    case contract::StoreOperation::kDelete: out->mutable_delete_key()->set_key(request.key); return;
    case contract::StoreOperation::kSet:
      out->mutable_set()->set_key(request.key);
      out->mutable_set()->set_value(request.value);
      return;
    case contract::StoreOperation::kAdd:
      out->mutable_add()->set_key(request.key);
      out->mutable_add()->set_amount(request.amount);
      return;
    case contract::StoreOperation::kCompareSet:
      out->mutable_compare_set()->set_key(request.key);
      out->mutable_compare_set()->set_expected(request.expected);
      out->mutable_compare_set()->set_desired(request.value);
      return;
  }
}

void Fill(const CommitOffer& offer, v1::CheckpointCommitRequest* out) {
  Fill(offer.generation, out->mutable_generation());
  out->set_request_id(offer.commit.request_id);
  out->set_step(offer.commit.step);
  out->set_path(offer.commit.path);
  out->set_manifest_digest(offer.commit.manifest_digest);
  out->set_next_sample(offer.commit.next_sample);
}

void Fill(const ProbeResult& result, v1::ProbeResult* out) {
  Fill(result.generation, out->mutable_generation());
  out->set_ok(result.ok);
  out->set_error(result.error);
  out->set_dataset_digest(result.dataset_digest);
  out->set_nonce(result.nonce);
  out->set_infrastructure(result.infrastructure);
}

void Fill(const PreflightResult& result, v1::PreflightResult* out) {
  out->set_number(result.number);
  out->set_interrupted(result.interrupted);
  out->set_passed(result.found.passed);
  out->set_failure(result.found.failure);
  for (const contract::PreflightCheck& check : result.found.checks) {
    v1::PreflightCheck* to = out->add_checks();
    to->set_name(check.name);
    to->set_outcome(check.outcome);
    to->set_seconds(check.seconds);
    to->set_value(check.value);
    to->set_unit(check.unit);
    to->set_detail(check.detail);
  }
}

contract::CheckpointCommitReply ToContract(const v1::CheckpointCommitReply& reply) {
  return {.request_id = reply.request_id(),
          .committed = reply.committed(),
          .error = reply.error(),
          .removable_paths = {reply.removable_paths().begin(), reply.removable_paths().end()}};
}

contract::StoreReply ToContract(const v1::StoreReply& reply) {
  return {.request_id = reply.request_id(),
          .found = reply.found(),
          .value = reply.value(),
          .number = reply.number(),
          .error = reply.error()};
}

}  // namespace

std::set<std::string> AgentCapabilities() { return {"search-checkpoints"}; }

absl::Status CheckProtocol(const v1::Welcome& welcome) {
  int version = welcome.protocol_version();
  if (version >= v1::LINK_PROTOCOL_OLDEST && version <= v1::LINK_PROTOCOL_NEWEST) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the coordinator (build ", welcome.build_id().empty() ? "unknown" : welcome.build_id(), ") speaks link protocol ",
      version == 0 ? "1" : absl::StrCat(version), ", this agent ", v1::LINK_PROTOCOL_OLDEST, " to ",
      v1::LINK_PROTOCOL_NEWEST, ": upgrade llm-coordinator, or run the llm-worker of its release"));
}

GenerationId ToId(const v1::Generation& generation) {
  return {.job = JobId(generation.job()), .attempt = generation.attempt(), .generation = generation.generation()};
}

v1::AgentMessage ToProto(const AgentMessage& message, const HostIdentity& identity) {
  v1::AgentMessage out;
  std::visit(Overloaded{
                 [&](const Hello& m) { Fill(m, identity, out.mutable_hello()); },
                 [&](const Heartbeat& m) { Fill(m, out.mutable_heartbeat()); },
                 [&](const ProbeResult& m) { Fill(m, out.mutable_probe_result()); },
                 [&](const PreflightResult& m) { Fill(m, out.mutable_preflight_result()); },
                 [&](const RankUpdate& m) { Fill(m, out.mutable_rank_update()); },
                 [&](const GangReleased& m) { Fill(m.generation, out.mutable_gang_released()->mutable_generation()); },
                 [&](const ProgressReport& m) { Fill(m, out.mutable_progress()); },
                 [&](const StoreCall& m) { Fill(m, out.mutable_store()); },
                 [&](const CommitOffer& m) { Fill(m, out.mutable_checkpoint_commit()); },
             },
             message);
  return out;
}

std::optional<Event> ToEvent(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kWelcome:
      return CoordinatorWelcomed{.heartbeat_interval = absl::Milliseconds(message.welcome().heartbeat_interval_ms())};
    case v1::CoordinatorMessage::kHeartbeat: return HeartbeatAnswered{message.heartbeat().durable_sequence()};
    case v1::CoordinatorMessage::kProbe: {
      const v1::Probe& probe = message.probe();
      return ProbeOrdered{.generation = ToId(probe.generation()),
                          .checkpoint_directory = probe.checkpoint_directory(),
                          .dataset = probe.dataset(),
                          .nonce = probe.nonce(),
                          .write = probe.write()};
    }
    case v1::CoordinatorMessage::kRunPreflight: return PreflightOrdered{message.run_preflight().number()};
    case v1::CoordinatorMessage::kStart: return ToStartOrder(message.start());
    case v1::CoordinatorMessage::kStop: {
      const v1::StopRanks& stop = message.stop();
      return StopOrdered{.generation = ToId(stop.generation()),
                         .grace = absl::Milliseconds(stop.grace_ms()),
                         .reason = stop.reason(),
                         .checkpoint_first = stop.checkpoint_first(),
                         .failed = stop.failed()};
    }
    case v1::CoordinatorMessage::kRequestCheckpoint:
      return CheckpointOrdered{ToId(message.request_checkpoint().generation())};
    case v1::CoordinatorMessage::kStore:
      return StoreAnswered{ToId(message.store().generation()), ToContract(message.store())};
    case v1::CoordinatorMessage::kCheckpointCommit:
      return CommitAnswered{ToId(message.checkpoint_commit().generation()), ToContract(message.checkpoint_commit())};
    case v1::CoordinatorMessage::kRefused:
    case v1::CoordinatorMessage::kReadLog:
    case v1::CoordinatorMessage::kInspect:
    case v1::CoordinatorMessage::MESSAGE_NOT_SET: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace llmctl::agent
