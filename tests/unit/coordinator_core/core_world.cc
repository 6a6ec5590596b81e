#include "tests/unit/coordinator_core/core_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/overloaded.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"
#include "coordinator/core/node_ledger.h"
#include "coordinator/core/quarantine.h"
#include "coordinator/core/snapshot_for_placement.h"
#include "coordinator/core/turn.h"
#include "coordinator/placement/placement.h"

namespace llmctl::core {

CoreWorld::CoreWorld() : now{absl::Seconds(1000), absl::FromUnixSeconds(1'700'000'000)} { Do(CoordinatorStarted{}); }

const std::vector<Command>& CoreWorld::Do(const Event& event) {
  Take(Step(state, event, now));
  return last;
}

void CoreWorld::Take(std::vector<Command> commands) {
  last = std::move(commands);
  for (const Command& command : last) Keep(command);
  CheckStore();
  EXPECT_THAT(FindViolations(state), testing::IsEmpty());
  CheckSettled();
}

void CoreWorld::CheckSettled() {
  State copy = state;
  Turn turn(copy, PlanReady{}, now, /*focus=*/nullptr);
  SettleNodes(turn);
  EXPECT_THAT(turn.Finish(), testing::IsEmpty()) << "a node could have moved on, and nobody has looked at it";
}

void CoreWorld::Keep(const Command& command) {
  if (const auto* c = std::get_if<PersistJob>(&command)) store_.jobs[c->job] = state.jobs.at(c->job);
  if (const auto* c = std::get_if<ForgetJob>(&command)) store_.jobs.erase(c->job);
  if (const auto* c = std::get_if<PersistNode>(&command)) store_.nodes[c->node] = state.nodes.at(c->node);
  if (std::get_if<PersistCounters>(&command)) store_.counters = state.counters;
  if (const auto* c = std::get_if<AppendJobEvent>(&command)) history_[c->job].push_back(c->event);
  if (const auto* c = std::get_if<ProbeHost>(&command)) nonces_[c->node] = c->nonce;
  if (const auto* c = std::get_if<ArmTimer>(&command)) deadlines_.emplace(now.monotonic + c->delay, c->timer);
}

void CoreWorld::CheckStore() {
  EXPECT_EQ(store_.counters, state.counters);
  EXPECT_TRUE(store_.jobs == state.jobs) << "a job was changed and not persisted";
  EXPECT_TRUE(store_.nodes == state.nodes) << "a node was changed and not persisted";
}

void CoreWorld::Advance(absl::Duration duration) {
  absl::Duration end = now.monotonic + duration;
  while (!deadlines_.empty() && deadlines_.begin()->first <= end) {
    auto [deadline, timer] = *deadlines_.begin();
    deadlines_.erase(deadlines_.begin());
    now = now + (deadline - now.monotonic);
    Do(TimerFired{timer});
  }
  now = now + (end - now.monotonic);
}

void CoreWorld::Restart() {
  deadlines_.clear();
  State loaded = store_;
  RestoreVolatile(loaded);
  state = std::move(loaded);
  Do(CoordinatorStarted{});
}

void CoreWorld::Hold(const JobId& id, const std::string& why) {
  history_[id].push_back(HoldJob(store_.jobs.at(id), why, now));
  Restart();
}

void CoreWorld::Bury(const JobId& id, const std::string& why) {
  history_[id].push_back(BuryJob(store_.jobs.at(id), why, now));
  Restart();
}

void CoreWorld::RaiseFloor(const JobId& id, int64_t floor) {
  state.jobs.at(id).generation_floor = floor;
  store_.jobs.at(id).generation_floor = floor;
}

void CoreWorld::Capable(const std::string& name, std::set<std::string> capabilities) {
  Node node = state.nodes.at(NodeId(name));
  node.capabilities = std::move(capabilities);
  Do(WorkerConnected{node, next_link_++, {}});
}

Node CoreWorld::MakeNode(const std::string& name, int devices) {
  Node node;
  node.id = NodeId(name);
  node.boot_id = "boot-1";
  node.incarnation = 1;
  node.trainer_digest = "trainer-1";
  for (int i = 0; i < devices; ++i) node.devices.push_back({.index = i, .kind = "cpu"});
  return node;
}

void CoreWorld::Connect(const std::string& name, int devices) {
  Do(WorkerConnected{MakeNode(name, devices), next_link_++, {}});
}

void CoreWorld::Reconnect(const std::string& name, std::vector<ShimReport> shims) {
  Node node = state.nodes.at(NodeId(name));
  Do(WorkerConnected{node, next_link_++, std::move(shims)});
}

void CoreWorld::Lose(const std::string& name) {
  Do(WorkerLost{NodeId(name), state.nodes.at(NodeId(name)).incarnation, "no heartbeat for 10 s"});
}

void CoreWorld::Struck(const std::string& name, Strike strike) {
  Turn turn(state, PlanReady{}, now, /*focus=*/nullptr);
  StrikeNode(turn, NodeId(name), std::move(strike));
  SettleNodes(turn);
  Take(turn.Finish());
}

std::vector<ShimReport> CoreWorld::ShimsOf(const std::string& name) const {
  std::vector<ShimReport> shims;
  for (const auto& [id, job] : state.jobs) {
    if (!HasLiveGang(job.phase) || !job.attempt->ranks_requested) continue;
    for (size_t i = 0; i < job.attempt->ranks.size(); ++i) {
      const RankState& rank = job.attempt->ranks[i];
      if (rank.node.value() != name) continue;
      shims.push_back({CurrentGeneration(job), static_cast<int>(i), rank.device,
                       std::max(rank.phase, RankPhase::kStarting), rank.pid, rank.exit});
    }
  }
  return shims;
}

void CoreWorld::Release(const JobId& id, const std::string& name) { Do(GangReleased{NodeId(name), generation(id)}); }

void CoreWorld::ReleaseAll(const JobId& id) {
  std::vector<NodeId> held = job(id).attempt->unreleased;
  for (const NodeId& node : held) Release(id, node.value());
}

JobRequirements CoreWorld::Needs(int workers, int devices_per_worker) {
  JobRequirements needs;
  needs.workers_min = needs.workers_max = workers;
  needs.devices_per_worker = devices_per_worker;
  needs.global_batch_size = 12;
  needs.checkpoint_directory = "/ckpt";
  needs.dataset = "/data";
  return needs;
}

JobId CoreWorld::Submit(JobRequirements requirements, const std::string& key) {
  JobSubmitted event;
  event.request = next_request_++;
  event.name = "demo";
  event.project = "default";
  event.spec = "spec";
  event.requirements = std::move(requirements);
  event.idempotency_key = key;
  Do(event);
  return Sent<ReplyToUser>().at(0).job;
}

void CoreWorld::Place() { Do(PlanReady{placement::MakePlan(MakeSnapshot(state))}); }

ProbeAnswered CoreWorld::Passed(const JobId& id, const std::string& node, const std::string& digest) const {
  return {NodeId(node), generation(id), true, "", digest, nonces_.at(NodeId(node))};
}

ProbeAnswered CoreWorld::NotPassed(const JobId& id, const std::string& node, const std::string& error) const {
  return {NodeId(node), generation(id), false, error, "", nonces_.at(NodeId(node))};
}

void CoreWorld::AnswerProbes(const JobId& id, const std::string& digest) {
  for (const NodeId& host : HostsOf(*job(id).attempt)) Do(Passed(id, host.value(), digest));
}

void CoreWorld::ReportAll(const JobId& id, RankPhase phase) {
  for (size_t i = 0; i < job(id).attempt->ranks.size(); ++i) {
    Do(RankChanged{job(id).attempt->ranks[i].node, generation(id), static_cast<int>(i), phase, 100 + int64_t(i), {}});
  }
}

void CoreWorld::Run(const JobId& id) {
  Place();
  ASSERT_EQ(job(id).phase, JobPhase::kStarting) << state.waiting_reason[id];
  AnswerProbes(id);
  ReportAll(id, RankPhase::kRunning);
  ASSERT_EQ(job(id).phase, JobPhase::kRunning);
}

void CoreWorld::Exit(const JobId& id, int rank, RankExit exit) {
  Do(RankChanged{job(id).attempt->ranks.at(rank).node, generation(id), rank, RankPhase::kExited, 0, std::move(exit)});
}

void CoreWorld::ExitAll(const JobId& id, RankExit exit) {
  GenerationId before = generation(id);
  size_t ranks = job(id).attempt->ranks.size();
  for (size_t i = 0; i < ranks && HasLiveGang(job(id).phase) && generation(id) == before; ++i) {
    Exit(id, static_cast<int>(i), exit);
  }
}

void CoreWorld::Commit(const JobId& id, int64_t step) {
  CheckpointRecord checkpoint;
  checkpoint.step = step;
  checkpoint.path = "/ckpt/step-" + std::to_string(step);
  checkpoint.manifest_digest = "m" + std::to_string(step);
  checkpoint.next_sample = step * 12;
  Do(CheckpointOffered{job(id).attempt->ranks.front().node, generation(id), step, checkpoint});
}

void CoreWorld::FailOnce(const JobId& id, RankExit exit) {
  Exit(id, 0, std::move(exit));
  for (size_t i = 1; i < job(id).attempt->ranks.size(); ++i) Exit(id, static_cast<int>(i), StoppedByAgent());
  ReleaseAll(id);
}

GenerationId CoreWorld::generation(const JobId& id) const { return CurrentGeneration(job(id)); }

std::vector<std::string> CoreWorld::History(const JobId& id) const {
  std::vector<std::string> kinds;
  auto found = history_.find(id);
  if (found == history_.end()) return kinds;
  for (const JobEventRecord& event : found->second) kinds.push_back(event.kind);
  return kinds;
}

std::string CoreWorld::HistoryText(const JobId& id, const std::string& kind) const {
  auto found = history_.find(id);
  if (found == history_.end()) return "";
  for (auto event = found->second.rbegin(); event != found->second.rend(); ++event) {
    if (event->kind == kind) return event->text;
  }
  return "";
}

absl::Status CoreWorld::LastReply() const {
  std::vector<ReplyToUser> replies = Sent<ReplyToUser>();
  if (replies.size() != 1) return absl::InternalError("the step did not reply once");
  return replies.front().status;
}

}  // namespace llmctl::core
