// All parts of a simulated cluster, connected, and what must be true of them together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/coordinator.h"
#include "simulator/coordinator_disk.h"
#include "simulator/faults.h"
#include "simulator/host.h"
#include "simulator/network.h"
#include "simulator/run.h"
#include "simulator/script.h"
#include "simulator/shared_disk.h"
#include "simulator/simulation.h"
#include "simulator/trainers.h"
#include "simulator/users.h"

namespace llmctl::simulator {

class World {
 public:
  explicit World(const RunOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome Run();

 private:
  void BuildHosts();
  void BuildCoordinators(bool check_always);
  void ConnectNetwork();
  Clock MakeClock();

  // The coordinator with the highest term, or none; now and then the other one, as an old address leads there.
  Coordinator* Newest();
  int CoordinatorToAsk();

  int64_t Events() const;  // of the core
  bool SeenEnough() const;
  void RunUntil(absl::Duration end);
  void WaitForRest(absl::Duration bound);
  Outcome Summary();

  // ---- what must hold ----
  void CheckPromises();
  void CheckJob(const JobId& id, const Job& job);
  void CheckRetired(const GenerationId& id, int rank);
  // What is not yet as it must be in peace; empty when the world is at rest.
  std::string FindUnrest();
  std::string FindRestlessHost(const core::State& state) const;
  std::string FindRestlessJob(const core::State& state) const;

  Simulation sim_;
  const RunOptions options_;
  const int host_count_;
  const double drift_most_;
  SharedDisk disk_;
  Network network_;
  Trainers trainers_;
  CoordinatorDisk coordinator_disk_;
  std::vector<std::unique_ptr<Coordinator>> coordinators_;
  std::vector<std::unique_ptr<Host>> hosts_;  // the last has the name of the first
  std::unique_ptr<Users> users_;
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<Script> script_;
  int64_t checked_revision_ = -1;
};

}  // namespace llmctl::simulator
