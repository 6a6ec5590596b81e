// What goes wrong, when: each seed draws which faults it has and how often, so that rare mixtures occur.
#pragma once

#include <memory>
#include <vector>

#include "simulator/coordinator.h"
#include "simulator/host.h"
#include "simulator/network.h"
#include "simulator/simulation.h"
#include "simulator/trainers.h"

namespace llmctl::simulator {

class Faults {
 public:
  using Hosts = std::vector<std::unique_ptr<Host>>;
  Faults(Simulation& sim, Network& network, Coordinator& coordinator, Trainers& trainers, Hosts& hosts);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  void Begin();
  // Everything is repaired and stays so.
  void Heal();

 private:
  using Fault = void (Faults::*)();

  void Next();
  Host& AnyHost() { return *hosts_[sim_.Pick(static_cast<int>(hosts_.size()))]; }

  void CrashCoordinator();
  void CrashCoordinatorAfterCommit();
  void PauseCoordinator();
  void FillDisk();
  void CrashAgent();
  void FailTrainer();
  void WedgeTrainer();
  void KillShim();
  void RebootHost();
  void Partition();
  void CutLink();

  Simulation& sim_;
  Network& network_;
  Coordinator& coordinator_;
  Trainers& trainers_;
  Hosts& hosts_;
  std::vector<Fault> chosen_;
  absl::Duration spacing_;
  bool over_ = false;
};

}  // namespace llmctl::simulator
