// One machine: a disk, an agent around the real agent core, and the shims that outlive it.
//
// A shim keeps what an absent agent must not miss (started, ready, requests without an answer, the exit record) and
// tells it to the next one. The state directory is locked by the agent that has it: while that one stands still, no
// other starts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/model/node.h"
#include "simulator/clock.h"
#include "simulator/network.h"
#include "simulator/shared_disk.h"
#include "simulator/simulation.h"
#include "simulator/trainers.h"
#include "worker/agent/core/step.h"

namespace llmctl::simulator {

class Host {
 public:
  struct Machine {
    int index = 0;
    NodeId node;  // two machines may have been given one name
    int devices = 1;
    Clock clock;
    bool off = false;  // at first
  };
  struct Surroundings {
    // The coordinator that an agent finds at the address, -1: nobody answers.
    std::function<int()> coordinator;
    // The exit record of a rank is about to be forgotten here.
    std::function<void(const GenerationId&, int rank)> on_retired;
  };

  Host(Simulation& sim, Network& network, Trainers& trainers, SharedDisk& disk, Machine machine);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  void Connect(Surroundings surroundings) { surroundings_ = std::move(surroundings); }

  const NodeId& node() const { return node_; }
  int index() const { return index_; }
  bool has_power() const { return has_power_; }
  bool agent_up() const { return !agents_.empty(); }
  // Of the agent that serves; null while there is none.
  const agent::State* agent() const;

  void StartAgent();

  // ---- faults ----
  void CrashAgent();
  // It dies inside one of its next steps, between two commands; `down` later it is started again.
  void CrashAgentInStep(int commands_left, absl::Duration down);
  // The next Hello is so long under way, and meanwhile its agent dies and another says Hello.
  void ReplaceAgentBehindHello(absl::Duration length) { hello_takes_ = length; }
  // It stands still (SIGSTOP). Somebody tries to start another meanwhile.
  void PauseAgent(absl::Duration length);
  void FillDisk(absl::Duration length) { disk_full_until_ = sim_.now() + length; }
  struct Loss {
    bool wipe = false;     // another machine takes its place
    bool records = false;  // what was written last is lost
  };
  // All processes are gone; the disk stays unless it is lost.
  void PowerOff(Loss loss);
  void PowerOn();
  void KillShim(const Trainers::Rank& id);
  bool has_standby() const { return !standbys_.empty(); }
  void KillStandby();
  // The next pre-flight finds the machine unfit.
  void Spoil() { unfit_ = true; }
  void JumpClock(absl::Duration by) { clock_.Jump(by); }
  void Heal();

  void OnMessage(int64_t link, const Network::Ends& ends, const agent::Event& message);
  void OnLinkClosed(int64_t link, const Network::Ends& ends);

 private:
  struct Shim {
    int device = 0;
    absl::Duration orphan_timeout;
    int64_t pid = 0;
    bool alive = true;
    bool ready = false;
    int64_t agent = 0;  // the one that was connected last
    std::map<int64_t, contract::CheckpointCommit> commits;      // without an answer
    std::map<int64_t, contract::StoreRequest> store_requests;  // likewise
    std::optional<agent::ExitRecord> exit;
  };
  using Key = std::pair<GenerationId, int>;
  struct Disk {
    std::map<JobId, int64_t> fences;
    std::map<std::pair<GenerationId, int64_t>, contract::CheckpointCommit> outbox;
    int64_t incarnation = 0;
    std::map<Key, Shim> shims;
  };
  // A process.
  struct Agent {
    int64_t life = 0;
    int64_t incarnation = 0;
    agent::State state;
    int64_t link = 0;
    absl::Duration heard;  // when the coordinator was last heard on the link
    bool standing_still = false;
    std::vector<Simulation::Action> stalled;
    bool heard_meanwhile = false;
    bool fences_lost = false;  // this step's fences could not be written
    int64_t preflight = 0;     // number of the newest; its process dies with the agent
  };
  // A trainer that waits for a job; it outlives the agent, as ranks do.
  struct Standby {
    bool alive = true;
  };

  // ---- host_agent.cc: the agent's process ----
  Agent* Find(int64_t life);
  void Do(int64_t life, const agent::Event& event);
  void Execute(Agent& agent, agent::Command& command);
  // After `delay` of this machine's time, if the same agent is still there and does not stand still.
  template <typename F>
  void Later(int64_t life, absl::Duration delay, F action) {
    sim_.After(clock_.TrueLength(delay), [this, life, action = std::move(action)]() mutable {
      if (Agent* agent = Find(life)) WhenAwake(*agent, std::move(action));
    });
  }
  template <typename F>
  void WhenAwake(Agent& agent, F action) {
    if (agent.standing_still) {
      agent.stalled.push_back(std::move(action));
    } else {
      action();
    }
  }
  void WakeAgent(int64_t life);
  void BeginAgent();
  void EndAgent(int64_t life);
  void PersistFences(Agent& agent);
  void PersistOutbox(const Agent& agent);
  void Retire(const agent::RetireShim& command);
  void Dial(int64_t life);
  // Looks after `length` whether the coordinator is still heard.
  void WatchLink(int64_t life, int64_t link, absl::Duration length);
  void LoseLink(Agent& agent);
  void HoldHello(const Agent& agent);
  void Probe(int64_t life, const agent::ProbeOrdered& probe);
  void SendToShim(int64_t life, const agent::SendToShim& command);
  void TellEverything(int64_t life, const Key& key);
  void CheckOutbox(const Agent& agent);
  void SpoilOrder(Agent& agent, const agent::Event& message);
  Node Describe(const Agent& agent) const;

  // ---- host_idle.cc: what a host does while no job needs it ----
  void FindStandbys(int64_t life);
  void StartStandby(int64_t life, int64_t number);
  void LoadStandby(int64_t life, int64_t number);
  void TakeStandby(int64_t number);
  void RunPreflight(Agent& agent);
  void CancelPreflight(Agent& agent);

  // ---- host.cc: the machine ----
  void CheckDevicesAreFree(const agent::StartOrdered& order);
  void CheckFenced(const GenerationId& generation);
  void Spawn(int64_t life, const agent::SpawnShim& command);
  void Greet(int64_t life, const Key& key);
  void SayToTrainer(int64_t life, const Key& key, const contract::Message& message);
  void HearFromTrainer(const Key& key, contract::Message message);
  void TrainerExited(const Key& key, agent::ExitRecord exit);
  void TellAgents(absl::Duration delay, agent::Event event);

  Simulation& sim_;
  Network& network_;
  Trainers& trainers_;
  SharedDisk& shared_;
  const int index_;
  const NodeId node_;
  const int devices_;
  Clock clock_;
  Surroundings surroundings_;

  bool has_power_ = true;
  int boot_ = 1;
  Disk disk_;
  std::map<int64_t, Standby> standbys_;
  bool unfit_ = false;
  absl::Duration disk_full_until_;
  int64_t lives_ = 0;
  std::map<int64_t, Agent> agents_;  // by life; two only if the lock failed
  absl::Duration hello_takes_ = absl::ZeroDuration();
  std::optional<std::pair<int, absl::Duration>> crash_in_step_;  // commands left, time to the next start

  // ---- what really happened, for the checks ----
  std::map<JobId, int64_t> fenced_;    // highest generation that this disk was told of
  std::set<GenerationId> released_;    // said to have no process left
  // Offers that were written down and not answered.
  std::set<std::pair<GenerationId, int64_t>> offers_;
};

}  // namespace llmctl::simulator
