// One machine: a disk, an agent around the real agent core, and the shims that outlive it.
//
// A shim keeps what an absent agent must not miss (started, ready, commits without an answer, the exit record) and
// tells it to the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "coordinator/model/node.h"
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
    int devices = 1;
  };

  Host(Simulation& sim, Network& network, Trainers& trainers, SharedDisk& disk, Machine machine);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  NodeId node() const { return NodeId("node-" + std::to_string(index_)); }
  // What its Hello says of the machine.
  Node Describe() const;

  void StartAgent();
  void CrashAgent();
  // All processes are gone; the disk stays unless `wipe`.
  void PowerOff(bool wipe);
  void PowerOn();
  void KillShim(const Trainers::Rank& id);
  void set_coordinator_up(std::function<bool()> up) { coordinator_up_ = std::move(up); }
  // The exit record of a rank is about to be forgotten here.
  void set_on_retired(std::function<void(const GenerationId&, int rank)> call) { on_retired_ = std::move(call); }

  void OnMessage(int64_t link, const agent::Event& message);
  void OnLinkClosed(int64_t link);

  bool agent_up() const { return agent_up_; }
  const agent::State& agent() const { return agent_; }
  bool has_power() const { return has_power_; }

 private:
  struct Shim {
    int device = 0;
    absl::Duration orphan_timeout;
    int64_t pid = 0;
    bool alive = true;
    bool ready = false;
    std::map<int64_t, contract::CheckpointCommit> unanswered;
    std::optional<agent::ExitRecord> exit;
  };
  using Key = std::pair<GenerationId, int>;
  struct Disk {
    std::map<JobId, int64_t> fences;
    std::map<std::pair<GenerationId, int64_t>, contract::CheckpointCommit> outbox;
    int64_t incarnation = 0;
    std::map<Key, Shim> shims;
  };

  void Do(const agent::Event& event);
  void Execute(const agent::Command& command);
  // After `delay`, if the same agent is still there.
  void Later(absl::Duration delay, std::function<void()> action);
  void CheckDevicesAreFree(const agent::StartOrdered& order);
  void Dial();
  void WatchLink(int64_t link);
  void StartStandby(int64_t number);
  void Spawn(const agent::SpawnShim& command);
  void SayToTrainer(const Key& key, const contract::Message& message);
  void HearFromTrainer(const Key& key, contract::Message message);
  void TrainerExited(const Key& key, agent::ExitRecord exit);
  void TellEverything(const Key& key);
  void Probe(const agent::ProbeOrdered& probe);
  void EndPreflight(bool interrupted);

  Simulation& sim_;
  Network& network_;
  Trainers& trainers_;
  SharedDisk& shared_;
  const int index_;
  const int devices_;
  std::function<bool()> coordinator_up_;
  std::function<void(const GenerationId&, int)> on_retired_;

  bool has_power_ = true;
  int boot_ = 1;
  Disk disk_;
  bool agent_up_ = false;
  int64_t preflight_ = 0;  // number of the one that runs; its process dies with the agent
  int64_t life_ = 0;  // of the agent process
  agent::State agent_;
  std::set<int64_t> standbys_;  // end with their agent
  int64_t link_ = 0;
  absl::Duration heard_;  // when the coordinator was last heard on the link
};

}  // namespace llmctl::simulator
