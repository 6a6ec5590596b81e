// The coordinator's shell in the simulated world: timers, links and a disk around the real core, placement, commit
// pipeline and lease table.
//
// A step changes the state at once; its commands leave when its records are durable, in order. A crash loses what is
// not durable, and may come between a commit and its commands.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/step.h"
#include "coordinator/runtime/commit_pipeline.h"
#include "coordinator/runtime/lease_table.h"
#include "simulator/network.h"
#include "simulator/record_store.h"
#include "simulator/simulation.h"

namespace llmctl::simulator {

class Coordinator {
 public:
  Coordinator(Simulation& sim, Network& network, std::function<Node(int)> describe_host);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  void Start();
  void Crash();
  // The next commit becomes durable, and then the process dies before any of its commands leaves; `down` later it is
  // started again.
  void CrashAfterNextCommit(absl::Duration down) { crash_after_commit_ = down; }
  void SpareNextCommit() { crash_after_commit_.reset(); }
  // The process stands still for so long (SIGSTOP, a VM pause, a slow fsync).
  void Pause(absl::Duration duration);
  // Commits fail for so long, as on a full disk.
  void FailCommits(absl::Duration duration) { disk_full_until_ = sim_.now().monotonic + duration; }

  void OnMessage(int64_t link, int host, const agent::AgentMessage& message);
  void OnLinkClosed(int64_t link);
  // Answered through `reply` unless the coordinator dies first.
  void Request(core::Event event);
  void set_reply(std::function<void(const core::ReplyToUser&)> reply) { reply_ = std::move(reply); }

  bool up() const { return up_; }
  const core::State& state() const { return core_->state; }
  const RecordStore& store() const { return store_; }
  // Nothing is on its way to the disk.
  bool settled() const { return core_->pipeline.empty(); }

 private:
  // What dies with the process.
  struct Process {
    core::State state;
    runtime::CommitPipeline pipeline;
    runtime::LeaseTable leases;
    std::map<NodeId, int64_t> links;  // admitted
    // Answers to heartbeats: each leaves once the steps that were taken before it are durable.
    std::vector<std::pair<int64_t, std::function<void()>>> answers;
    int64_t steps = 0;
    int64_t durable_steps = 0;
    bool planning = false;
    bool plan_again = false;
  };

  // After `delay`, in this life of the process, and not while it stands still.
  void Later(absl::Duration delay, std::function<void()> action);
  void WhenAwake(std::function<void()> action);
  void Take(int64_t link, int host, const agent::AgentMessage& message);
  void OnOffer(core::CheckpointOffered& offer);
  void OnHeartbeat(int64_t link, int64_t sequence);
  void Post(const core::Event& event);
  void SpoilRecords(std::vector<store::Change>& changes);
  void BeginCommit();
  void EndCommit(const std::vector<store::Change>& batch);
  void ReleaseDurable();
  void CarryOut(const core::Command& command);
  void Admit(const core::AdmitWorker& command);
  void SendOrder(const NodeId& node, const agent::Event& order);
  void CheckFenced(const GenerationId& generation);
  void Plan();
  void WatchLeases();

  Simulation& sim_;
  Network& network_;
  std::function<Node(int)> describe_host_;
  const absl::Duration commit_time_;
  std::function<void(const core::ReplyToUser&)> reply_;

  RecordStore store_;
  bool up_ = false;
  int64_t life_ = 0;
  bool standing_still_ = false;
  std::vector<std::function<void()>> stalled_;
  absl::Duration disk_full_until_;
  absl::Duration retry_at_;
  std::optional<absl::Duration> crash_after_commit_;
  std::unique_ptr<Process> core_;
};

}  // namespace llmctl::simulator
