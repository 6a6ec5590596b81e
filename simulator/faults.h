// What can go wrong, a function each. What they do, they do with the dice they are given: the script deals every fault
// its own, so that leaving one out does not change the others.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "simulator/coordinator.h"
#include "simulator/host.h"
#include "simulator/network.h"
#include "simulator/occasion.h"
#include "simulator/simulation.h"
#include "simulator/trainers.h"

namespace llmctl::simulator {

class Faults {
 public:
  using Fault = void (Faults::*)(Dice&, const Occasion&);
  // All that can be hit.
  struct Victims {
    Network& network;
    CoordinatorDisk& disk;
    Trainers& trainers;
    std::vector<std::unique_ptr<Coordinator>>& coordinators;
    // The last has the name of the first, and is off unless a fault turns it on.
    std::vector<std::unique_ptr<Host>>& hosts;
    bool clocks_jump = true;
  };

  Faults(Simulation& sim, Victims victims) : sim_(sim), v_(victims) {}
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  static const std::vector<Fault>& All();
  // Everything is repaired and stays so.
  void Heal();

 private:
  // ---- of coordinators and their disk ----
  void CrashCoordinator(Dice& dice, const Occasion& occasion);
  void CrashCoordinatorAfterCommit(Dice& dice, const Occasion& occasion);
  void PauseCoordinator(Dice& dice, const Occasion& occasion);
  void StartSecondCoordinator(Dice& dice, const Occasion& occasion);
  void FillDisk(Dice& dice, const Occasion& occasion);
  void SlowDisk(Dice& dice, const Occasion& occasion);
  void KillDiskInCommit(Dice& dice, const Occasion& occasion);
  // ---- of hosts ----
  void CrashAgent(Dice& dice, const Occasion& occasion);
  void CrashAgentInStep(Dice& dice, const Occasion& occasion);
  void PauseAgent(Dice& dice, const Occasion& occasion);
  void ReplaceAgent(Dice& dice, const Occasion& occasion);
  void FillAgentDisk(Dice& dice, const Occasion& occasion);
  void RebootHost(Dice& dice, const Occasion& occasion);
  void StartNamesake(Dice& dice, const Occasion& occasion);
  void SpoilHost(Dice& dice, const Occasion& occasion);
  void JumpClock(Dice& dice, const Occasion& occasion);
  // ---- of trainers and shims ----
  void FailTrainer(Dice& dice, const Occasion& occasion);
  void PauseTrainer(Dice& dice, const Occasion& occasion);
  void WedgeTrainer(Dice& dice, const Occasion& occasion);
  void DeafenTrainer(Dice& dice, const Occasion& occasion);
  void HangTrainer(Dice& dice, const Occasion& occasion);
  void KillShim(Dice& dice, const Occasion& occasion);
  void KillStandby(Dice& dice, const Occasion& occasion);
  // ---- of the network ----
  void Partition(Dice& dice, const Occasion& occasion);
  void CutLink(Dice& dice, const Occasion& occasion);
  void SlowNetwork(Dice& dice, const Occasion& occasion);
  void RepeatMessages(Dice& dice, const Occasion& occasion);

  Host& AnyHost(Dice& dice, const Occasion& occasion);
  Coordinator* AnyCoordinator(Dice& dice);
  const Trainers::Rank* AnyTrainer(Dice& dice, const Occasion& occasion);
  // What the runtime's watch does: it says that the job hangs, as long as it does.
  void WatchHang(const GenerationId& generation);
  // `undo` after `length`, unless all has been healed before.
  void Lasts(absl::Duration length, std::function<void()> undo);

  Simulation& sim_;
  Victims v_;
  bool over_ = false;
};

}  // namespace llmctl::simulator
