#include "coordinator/rpc/link_mapping.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::rpc {
namespace {

absl::StatusOr<RankPhase> ToModel(v1::RankPhase phase) {
  switch (phase) {
    case v1::RANK_PHASE_STARTING: return RankPhase::kStarting;
    case v1::RANK_PHASE_RUNNING: return RankPhase::kRunning;
    case v1::RANK_PHASE_EXITED: return RankPhase::kExited;
    default: break;
  }
  return absl::InvalidArgumentError(absl::StrCat("rank phase ", phase, ": expected starting, running or exited"));
}

// An agent sends less of each; what another program sends must not grow every record of the job.
constexpr size_t kExitTextBytesMost = 64 << 10;

RankExit ToModel(const v1::ExitRecord& exit) {
  return {.exit_code = exit.exit_code(),
          .signal = exit.signal(),
          .fatal_class = exit.fatal_class().substr(0, kExitTextBytesMost),
          .fatal_message = exit.fatal_message().substr(0, kExitTextBytesMost),
          .stopped_by_agent = exit.stopped_by_agent(),
          .start_failed = exit.start_failed(),
          .log_tail = exit.log_tail().substr(0, kExitTextBytesMost),
          .kernel_log = exit.kernel_log().substr(0, kExitTextBytesMost)};
}

// Node names stand in tables and are parts of file names.
bool IsNodeName(absl::string_view name) {
  if (name.empty() || name.size() > 253 || !absl::ascii_isalnum(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

absl::StatusOr<core::ShimReport> ToModel(const v1::RunningShim& shim) {
  core::ShimReport report;
  report.generation = rpc::ToModel(shim.generation());
  report.rank = shim.rank();
  report.device = shim.device();
  LLM_ASSIGN_OR_RETURN(report.phase, ToModel(shim.phase()));
  report.pid = shim.pid();
  if (shim.has_exit()) report.exit = ToModel(shim.exit());
  return report;
}

absl::Status CheckHello(const v1::Hello& hello) {
  if (!IsNodeName(hello.node())) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello: node: found \"", absl::CEscape(hello.node().substr(0, 253)), "\", expected 1 to 253 ",
                     "letters, digits, '.', '-' or '_', the first a letter or digit; give llm-worker --node"));
  }
  if (hello.incarnation() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello of host ", hello.node(), ": incarnation ", hello.incarnation(), ": expected at least 1"));
  }
  std::set<int> indices;
  for (const v1::Device& device : hello.devices()) {
    if (device.index() < 0 || !indices.insert(device.index()).second) {
      return absl::InvalidArgumentError(absl::StrCat("hello of host ", hello.node(), ": device index ", device.index(),
                                                     " is negative or given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> AgreeOnProtocol(const v1::Hello& hello, VersionRange ours) {
  VersionRange theirs{hello.protocol_version(), hello.protocol_version()};
  if (hello.oldest_protocol_version() > 0) theirs.oldest = hello.oldest_protocol_version();
  if (std::optional<int> version = CommonVersion(ours, theirs); version.has_value()) return *version;
  auto text = [](VersionRange range) {
    return range.oldest == range.newest ? absl::StrCat(range.newest) : absl::StrCat(range.oldest, " to ", range.newest);
  };
  const char* advice = theirs.newest < ours.oldest
                           ? "upgrade llm-worker on that host"
                           : "upgrade llm-coordinator before its hosts";
  return absl::FailedPreconditionError(absl::StrCat("host ", hello.node(), " (build ", hello.build_id(),
                                                    ") speaks link protocol ", text(theirs), ", this coordinator ",
                                                    text(ours), ": ", advice));
}

absl::StatusOr<core::WorkerConnected> ToModel(const v1::Hello& hello) {
  LLM_RETURN_IF_ERROR(CheckHello(hello));
  core::WorkerConnected connected;
  Node& node = connected.node;
  node.id = NodeId(hello.node());
  node.boot_id = hello.boot_id();
  node.incarnation = hello.incarnation();
  node.build_id = hello.build_id();
  node.trainer_digest = hello.trainer_digest();
  node.capabilities = {hello.capabilities().begin(), hello.capabilities().end()};
  node.fabric_address = hello.fabric_address();
  for (const v1::Device& device : hello.devices()) {
    node.devices.push_back({.index = device.index(),
                            .kind = device.kind(),
                            .model = device.model(),
                            .uuid = device.uuid(),
                            .memory_bytes = device.memory_bytes()});
  }
  for (const v1::RunningShim& shim : hello.shims()) {
    LLM_ASSIGN_OR_RETURN(core::ShimReport report, ToModel(shim));
    connected.shims.push_back(std::move(report));
  }
  return connected;
}

GenerationId ToModel(const v1::Generation& g) { return {JobId(g.job()), g.attempt(), g.generation()}; }

core::ProbeAnswered ToModel(const NodeId& node, const v1::ProbeResult& result) {
  return {.node = node,
          .generation = ToModel(result.generation()),
          .ok = result.ok(),
          .error = result.error(),
          .dataset_digest = result.dataset_digest(),
          .nonce = result.nonce(),
          .infrastructure = result.infrastructure()};
}

core::PreflightFinished ToModel(const NodeId& node, const v1::PreflightResult& result) {
  core::PreflightFinished finished{
      .node = node, .number = result.number(), .interrupted = result.interrupted(), .report = {}};
  finished.report.passed = result.passed();
  finished.report.failure = result.failure();
  for (const v1::PreflightCheck& check : result.checks()) {
    finished.report.checks.push_back({.name = check.name(),
                                      .outcome = check.outcome(),
                                      .seconds = check.seconds(),
                                      .value = check.value(),
                                      .unit = check.unit(),
                                      .detail = check.detail()});
  }
  return finished;
}

absl::StatusOr<core::RankChanged> ToModel(const NodeId& node, const v1::RankUpdate& update) {
  core::RankChanged changed{
      .node = node, .generation = ToModel(update.generation()), .rank = update.rank(), .pid = update.pid()};
  LLM_ASSIGN_OR_RETURN(changed.phase, ToModel(update.phase()));
  if (changed.phase == RankPhase::kExited) changed.exit = ToModel(update.exit());
  return changed;
}

core::CheckpointOffered ToModel(const NodeId& node, const v1::CheckpointCommitRequest& request) {
  core::CheckpointOffered offered{
      .node = node, .generation = ToModel(request.generation()), .request_id = request.request_id()};
  offered.checkpoint.step = request.step();
  offered.checkpoint.attempt = request.generation().attempt();
  offered.checkpoint.generation = request.generation().generation();
  offered.checkpoint.path = request.path();
  offered.checkpoint.manifest_digest = request.manifest_digest();
  offered.checkpoint.next_sample = request.next_sample();
  return offered;
}

runtime::Progress ToModel(const v1::ProgressReport& report) {
  runtime::Progress progress{.step = report.step(),
                             .steps = report.steps(),
                             .loss = report.loss(),
                             .learning_rate = report.learning_rate(),
                             .gradient_norm = report.gradient_norm(),
                             .tokens_per_second = report.tokens_per_second(),
                             .tokens = report.tokens(),
                             .step_seconds = report.step_seconds()};
  if (report.has_validation_loss()) {
    progress.validation_loss = report.validation_loss();
    progress.validation_step = report.validation_step();
  }
  return progress;
}

std::vector<runtime::RankPulse> ToModel(const v1::Heartbeat& heartbeat) {
  std::vector<runtime::RankPulse> pulses;
  for (const v1::RankPulse& pulse : heartbeat.pulses()) {
    pulses.push_back({.generation = ToModel(pulse.generation()),
                      .rank = pulse.rank(),
                      .activity = pulse.activity(),
                      .phase = pulse.phase(),
                      .where = pulse.where(),
                      .activity_seconds = pulse.activity_seconds(),
                      .phase_seconds = pulse.phase_seconds(),
                      .step = pulse.step(),
                      .steps_here = pulse.steps_here(),
                      .step_seconds = pulse.step_seconds(),
                      .busy_seconds = pulse.busy_seconds(),
                      .longest_validation_seconds = pulse.longest_validation_seconds(),
                      .longest_checkpoint_seconds = pulse.longest_checkpoint_seconds()});
  }
  return pulses;
}

std::vector<diagnosis::RankView> ToModel(const v1::Inspection& inspection) {
  std::vector<diagnosis::RankView> views;
  for (const v1::RankView& rank : inspection.ranks()) {
    diagnosis::RankView view = {.rank = rank.rank(),
                                .pid = rank.pid(),
                                .process = rank.process(),
                                .activity = rank.activity(),
                                .phase = rank.phase(),
                                .where = rank.where(),
                                .phase_seconds = rank.phase_seconds(),
                                .step = rank.step(),
                                .step_seconds = rank.step_seconds(),
                                .process_seconds = rank.process_seconds(),
                                .exit = rank.exit()};
    for (const v1::CollectivePosition& position : rank.collectives()) {
      view.collectives.push_back({.group = position.group(),
                                  .number = position.number(),
                                  .operation = position.operation(),
                                  .site = position.site(),
                                  .count = position.count(),
                                  .state = position.state(),
                                  .seconds = position.seconds()});
    }
    views.push_back(std::move(view));
  }
  return views;
}

absl::StatusOr<runtime::StoreOperation> ToModel(const v1::StoreRequest& request) {
  switch (request.operation_case()) {
    case v1::StoreRequest::kSet: return runtime::StoreSet{request.set().key(), request.set().value()};
    case v1::StoreRequest::kWait: return runtime::StoreWait{request.wait().key()};
    case v1::StoreRequest::kAdd: return runtime::StoreAdd{request.add().key(), request.add().amount()};
    case v1::StoreRequest::kCompareSet:
      return runtime::StoreCompareSet{request.compare_set().key(), request.compare_set().expected(),
                                      request.compare_set().desired()};
    case v1::StoreRequest::kDeleteKey: return runtime::StoreDelete{request.delete_key().key()};
    case v1::StoreRequest::kGet: return runtime::StoreGet{request.get().key()};
    case v1::StoreRequest::OPERATION_NOT_SET: break;
  }
  return absl::InvalidArgumentError("the store request has no operation that this coordinator knows");
}

v1::Generation ToProto(const GenerationId& id) {
  v1::Generation out;
  out.set_job(id.job.value());
  out.set_attempt(id.attempt);
  out.set_generation(id.generation);
  return out;
}

v1::Probe ToProto(const core::ProbeHost& command) {
  v1::Probe out;
  *out.mutable_generation() = ToProto(command.generation);
  out.set_checkpoint_directory(command.checkpoint_directory);
  out.set_dataset(command.dataset);
  out.set_nonce(command.nonce);
  out.set_write(command.write);
  return out;
}

v1::StartRanks ToProto(const core::StartRanks& command, const std::vector<std::string>& fabric_addresses) {
  CHECK_EQ(command.slots.size(), fabric_addresses.size());
  v1::StartRanks out;
  *out.mutable_generation() = ToProto(command.generation);
  out.set_world_size(static_cast<int>(command.slots.size()));
  for (size_t i = 0; i < command.slots.size(); ++i) {
    const Slot& slot = command.slots[i];
    if (slot.node == command.node) {
      v1::RankAssignment* own = out.add_ranks();
      own->set_rank(static_cast<int>(i));
      own->set_device(slot.device);
    }
    v1::RankAddress* address = out.add_rank_table();
    address->set_rank(static_cast<int>(i));
    address->set_node(slot.node.value());
    address->set_fabric_address(fabric_addresses[i]);
  }
  CHECK(out.mutable_spec()->ParseFromString(command.spec)) << "stored specification of job " << command.generation.job;
  out.set_micro_batch_size(command.micro_batch_size);
  for (const CheckpointRecord& checkpoint : command.checkpoints) {
    v1::CommittedCheckpoint* to = out.add_checkpoints();
    to->set_step(checkpoint.step);
    to->set_path(checkpoint.path);
    to->set_manifest_digest(checkpoint.manifest_digest);
  }
  out.set_trainer_digest(command.trainer_digest);
  out.set_search_checkpoints(command.search_checkpoints);
  return out;
}

v1::StopRanks ToProto(const core::StopRanks& command) {
  v1::StopRanks out;
  *out.mutable_generation() = ToProto(command.generation);
  out.set_grace_ms(absl::ToInt64Milliseconds(command.grace));
  out.set_reason(command.reason);
  out.set_checkpoint_first(command.checkpoint_first);
  out.set_failed(command.failed);
  return out;
}

v1::CheckpointCommitReply ToProto(const core::AnswerCheckpoint& command) {
  v1::CheckpointCommitReply out;
  *out.mutable_generation() = ToProto(command.generation);
  out.set_request_id(command.request_id);
  out.set_committed(command.committed);
  out.set_error(command.error);
  for (const std::string& path : command.removable_paths) out.add_removable_paths(path);
  return out;
}

v1::ReadLog ToProto(const runtime::LogQuery& query) {
  v1::ReadLog out;
  out.set_request_id(query.request_id);
  *out.mutable_generation() = ToProto(query.generation);
  out.set_rank(query.rank);
  out.set_stream(query.stream);
  out.set_offset(query.offset);
  out.set_max_bytes(query.bytes_max);
  return out;
}

v1::Inspect ToProto(const runtime::InspectionQuery& query) {
  v1::Inspect out;
  out.set_request_id(query.request_id);
  *out.mutable_generation() = ToProto(query.generation);
  out.set_reason(query.reason);
  return out;
}

v1::StoreReply ToProto(const v1::StoreRequest& request, const runtime::StoreAnswer& answer) {
  v1::StoreReply out;
  *out.mutable_generation() = request.generation();
  out.set_request_id(request.request_id());
  out.set_found(answer.found);
  out.set_value(answer.value);
  out.set_number(answer.number);
  out.set_error(answer.error);
  return out;
}

}  // namespace llmctl::rpc
