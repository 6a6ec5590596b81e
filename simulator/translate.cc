#include "simulator/translate.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::simulator {
namespace {

// Short, so that runs see ranks stop by themselves.
constexpr absl::Duration kOrphanTimeout = absl::Minutes(2);

RankPhase ToPhase(agent::RankPhase phase) {
  switch (phase) {
    case agent::RankPhase::kStarting: return RankPhase::kStarting;
    case agent::RankPhase::kRunning: return RankPhase::kRunning;
    case agent::RankPhase::kExited: return RankPhase::kExited;
  }
  return RankPhase::kAssigned;
}

std::optional<RankExit> ToExit(const std::optional<agent::ExitRecord>& exit) {
  if (!exit.has_value()) return std::nullopt;
  return RankExit{.exit_code = exit->exit_code,
                  .signal = exit->signal,
                  .fatal_class = exit->fatal_class,
                  .fatal_message = exit->fatal_message,
                  .stopped_by_agent = exit->stopped_by_agent,
                  .start_failed = exit->start_failed,
                  .log_tail = exit->log_tail,
                  .kernel_log = exit->kernel_log};
}

}  // namespace

agent::Event ToOrder(const core::ProbeHost& c) {
  return agent::ProbeOrdered{c.generation, c.checkpoint_directory, c.dataset, c.nonce, c.write};
}

agent::Event ToOrder(const core::RunPreflight& c) { return agent::PreflightOrdered{c.number}; }

agent::Event ToOrder(const core::StartRanks& c) {
  agent::StartOrdered order;
  order.generation = c.generation;
  order.world_size = static_cast<int>(c.slots.size());
  for (size_t i = 0; i < c.slots.size(); ++i) {
    int rank = static_cast<int>(i);
    order.rank_table.push_back({rank, c.slots[i].node.value(), c.slots[i].node.value()});
    if (c.slots[i].node == c.node) order.ranks.push_back({rank, c.slots[i].device});
  }
  order.start.trainer_config = c.checkpoints.empty()
                                   ? absl::StrCat(c.spec, "|0|")
                                   : absl::StrCat(c.spec, "|", c.checkpoints[0].step, "|", c.checkpoints[0].path);
  order.start.orphan_timeout = kOrphanTimeout;
  return order;
}

agent::Event ToOrder(const core::StopRanks& c) {
  return agent::StopOrdered{c.generation, c.grace, c.reason, c.checkpoint_first, c.failed};
}

agent::Event ToOrder(const core::AnswerCheckpoint& c) {
  return agent::CommitAnswered{c.generation, {c.request_id, c.committed, c.error, c.removable_paths}};
}

agent::Event ToOrder(const GenerationId& generation, int64_t request, const runtime::StoreAnswer& answer) {
  return agent::StoreAnswered{generation, {request, answer.found, answer.value, answer.number, answer.error}};
}

runtime::StoreOperation ToOperation(const contract::StoreRequest& request) {
  switch (request.operation) {
    case contract::StoreOperation::kGet: return runtime::StoreGet{request.key};
    case contract::StoreOperation::kSet: return runtime::StoreSet{request.key, request.value};
    case contract::StoreOperation::kWait: return runtime::StoreWait{request.key};
    case contract::StoreOperation::kAdd: return runtime::StoreAdd{request.key, request.amount};
    case contract::StoreOperation::kCompareSet:
      return runtime::StoreCompareSet{request.key, request.expected, request.value};
    case contract::StoreOperation::kDelete: return runtime::StoreDelete{request.key};
  }
  return runtime::StoreGet{request.key};
}

core::WorkerConnected ToConnected(const Node& node, int64_t link, const agent::Hello& hello) {
  core::WorkerConnected event;
  event.node = node;
  event.link = link;
  for (const agent::RunningShim& shim : hello.shims) {
    event.shims.push_back(
        {shim.generation, shim.rank, shim.device, ToPhase(shim.phase), shim.pid, ToExit(shim.exit)});
  }
  return event;
}

std::optional<core::Event> ToEvent(const NodeId& node, const agent::AgentMessage& message) {
  using Result = std::optional<core::Event>;
  return std::visit(
      Overloaded{
          [](const agent::Hello&) -> Result { return std::nullopt; },
          [](const agent::Heartbeat&) -> Result { return std::nullopt; },
          [](const agent::ProgressReport&) -> Result { return std::nullopt; },
          [](const agent::StoreCall&) -> Result { return std::nullopt; },
          [&](const agent::ProbeResult& m) -> Result {
            return core::ProbeAnswered{node, m.generation, m.ok, m.error, m.dataset_digest, m.nonce};
          },
          [&](const agent::PreflightResult& m) -> Result {
            core::PreflightFinished event{.node = node, .number = m.number, .interrupted = m.interrupted, .report = {}};
            event.report.passed = m.found.passed;
            event.report.failure = m.found.failure;
            return event;
          },
          [&](const agent::RankUpdate& m) -> Result {
            return core::RankChanged{node, m.generation, m.rank, ToPhase(m.phase), m.pid, ToExit(m.exit)};
          },
          [&](const agent::GangReleased& m) -> Result { return core::GangReleased{node, m.generation}; },
          [&](const agent::CommitOffer& m) -> Result {
            core::CheckpointOffered event;
            event.node = node;
            event.generation = m.generation;
            event.request_id = m.commit.request_id;
            event.checkpoint.step = m.commit.step;
            event.checkpoint.path = m.commit.path;
            event.checkpoint.manifest_digest = m.commit.manifest_digest;
            event.checkpoint.next_sample = m.commit.next_sample;
            return event;
          },
      },
      message);
}

}  // namespace llmctl::simulator
