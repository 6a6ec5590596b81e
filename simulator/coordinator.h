// A coordinator's shell in the simulated world: timers, links and a disk around the real core, placement, commit
// pipeline, lease table and rendezvous store.
//
// A step changes the state at once; its commands leave when its records are durable, in order. A crash loses what is
// not durable, and may come between a commit and its commands. Two coordinators may be up at once: the one with the
// lower term can commit nothing any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/step.h"
#include "coordinator/runtime/commit_pipeline.h"
#include "coordinator/runtime/lease_table.h"
#include "coordinator/runtime/rendezvous_store.h"
#include "simulator/clock.h"
#include "simulator/coordinator_disk.h"
#include "simulator/network.h"
#include "simulator/simulation.h"

namespace llmctl::simulator {

class Coordinator {
 public:
  struct Options {
    int index = 0;
    Clock clock;
    bool check_always = false;  // the store against the state after every step, not only at crashes
  };
  struct Surroundings {
    std::function<void(const core::ReplyToUser&)> reply;
    // After each event of the core.
    std::function<void(const core::Event&)> on_event;
    // Whether the other coordinator runs.
    std::function<bool()> other_up;
  };

  Coordinator(Simulation& sim, Network& network, CoordinatorDisk& disk, Options options);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  void Connect(Surroundings surroundings) { surroundings_ = std::move(surroundings); }

  // Tries again while the disk does not let it.
  void Start();

  // ---- faults ----
  void Crash();
  // The next commit becomes durable, and then the process dies before any of its commands leaves; `down` later it is
  // started again.
  void CrashAfterNextCommit(absl::Duration down) { crash_after_commit_ = down; }
  void SpareNextCommit() { crash_after_commit_.reset(); }
  // The process stands still for so long (SIGSTOP, a VM pause).
  void Pause(absl::Duration duration);
  // It ends and is not started again.
  void Retire();
  void JumpClock(absl::Duration by) { clock_.Jump(by); }

  void OnMessage(int64_t link, const Network::Ends& ends, const agent::AgentMessage& message);
  void OnLinkClosed(int64_t link);
  // Answered through `reply` unless the coordinator dies first.
  void Request(core::Event event);
  // What its own watches have found out.
  void Notice(core::Event event);

  bool up() const { return up_; }
  int64_t term() const { return up_ ? core_->term : 0; }
  const core::State& state() const { return core_->state; }
  // Nothing is on its way to the disk.
  bool settled() const { return core_->pipeline.empty(); }
  size_t rendezvous_bytes() const { return core_->rendezvous.bytes(); }
  int64_t events() const { return events_; }
  const std::vector<int64_t>& events_by_kind() const { return events_by_kind_; }

 private:
  // Which agent said Hello.
  struct Greeting {
    int host = 0;
    int64_t agent = 0;
    std::string boot_id;
  };
  // What dies with the process.
  struct Process {
    explicit Process(CoordinatorDisk::Opened opened);
    const int64_t term;
    core::State state;
    runtime::CommitPipeline pipeline;
    runtime::LeaseTable leases;
    runtime::RendezvousStore rendezvous;
    std::map<NodeId, int64_t> links;  // admitted
    // Per link, the newest heartbeat before which all is durable.
    std::map<int64_t, std::shared_ptr<int64_t>> confirmed;
    std::shared_ptr<const std::vector<store::Change>> in_flight;  // to the disk
    std::map<JobId, std::shared_ptr<const Job>> published;        // what readers see
    bool planning = false;
    bool plan_again = false;

    // ---- what really happened, for the checks ----
    std::map<NodeId, absl::Duration> heard;  // when the holder of the lease was heard, on our clock
    std::map<int64_t, Greeting> greetings;   // by link
    std::map<int, Greeting> newest_agent;    // by host: the newest that was admitted
    std::map<JobId, int64_t> requested;      // newest generation whose ranks were requested
  };

  // ---- coordinator.cc ----
  Instant Now() const { return clock_.At(sim_.now()); }
  // After `delay` of our time, in this life of the process, and not while it stands still.
  template <typename F>
  void Later(absl::Duration delay, F action) {
    sim_.After(clock_.TrueLength(delay), [this, life = life_, action = std::move(action)]() mutable {
      if (life == life_) WhenAwake(std::move(action));
    });
  }
  template <typename F>
  void WhenAwake(F action) {
    if (standing_still_) {
      stalled_.push_back(std::move(action));
    } else {
      action();
    }
  }
  void Wake(absl::Duration away);
  void Take(int64_t link, const Network::Ends& ends, const agent::AgentMessage& message);
  void OnHeartbeat(int64_t link, const Node& node, int64_t sequence);
  void OnStoreCall(int64_t link, const agent::StoreCall& call);
  void Post(const core::Event& event);
  void ReserveLeases(const std::vector<core::Command>& commands);
  void BeginCommit();
  void EndCommit(const std::vector<store::Change>& batch);
  void ReleaseDurable();
  void CheckStore(const char* when);
  void CountStanding(const NodeStanding& standing);

  // ---- coordinator_commands.cc ----
  void CarryOut(const core::Command& command);
  void Admit(const core::AdmitWorker& command);
  void SendOrder(const NodeId& node, agent::Event order);
  void CheckFenced(const GenerationId& generation);
  std::vector<int64_t> GenerationsOf(const llmctl::Plan& plan) const;
  // `before`: the generations of its jobs before it was applied.
  void CheckPlacement(const core::PlanReady& plan, const std::vector<int64_t>& before);
  void CheckGangsAreWhole(const runtime::StepOutput& step);
  void Plan();
  void WatchLeases();
  void ExpireLeases();
  void Renew(const Node& node);

  // ---- coordinator_mutants.cc: what mutants do, each at its place ----
  void SpoilHello(core::WorkerConnected& hello);
  void SpoilEvent(core::Event& event);
  void SpoilCommands(const core::Event& event, std::vector<core::Command>& commands);
  void SpoilRecords(std::vector<store::Change>& changes);
  void SpoilPlan(const llmctl::Plan& plan);
  void FreeReturned();
  void FreeTwice(const core::GangReleased& release);

  Simulation& sim_;
  Network& network_;
  CoordinatorDisk& disk_;
  const int index_;
  const bool check_always_;
  Clock clock_;
  Surroundings surroundings_;

  bool up_ = false;
  bool retired_ = false;
  int64_t life_ = 0;
  bool standing_still_ = false;
  bool leases_due_ = false;
  std::vector<Simulation::Action> stalled_;
  std::vector<Node> stalled_renewals_;
  absl::Duration retry_at_;
  std::optional<absl::Duration> crash_after_commit_;
  int failures_before_ = 0;  // of the job whose checkpoint is being offered; for a mutant
  std::unique_ptr<Process> core_;
  int64_t events_ = 0;
  std::vector<int64_t> events_by_kind_;
};

}  // namespace llmctl::simulator
