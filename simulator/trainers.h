// Simulated trainer processes: they find each other through rendezvous keys, take steps, save checkpoints, fail
// together, and end when told.
//
// One Group per generation. Steps are not simulated one by one: an action per checkpoint is enough for what the
// control plane can see.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "simulator/shared_disk.h"
#include "simulator/simulation.h"
#include "worker/agent/core/link.h"
#include "worker/contract/messages.h"

namespace llmctl::simulator {

class Trainers {
 public:
  // A process's way out: to its shim.
  struct Outlet {
    int host = 0;
    int device = 0;
    std::function<void(contract::Message)> say;
    std::function<void(agent::ExitRecord)> exit;
  };
  struct Rank {
    GenerationId generation;
    int rank = 0;
    bool operator==(const Rank&) const = default;
  };

  Trainers(Simulation& sim, SharedDisk& disk) : sim_(sim), disk_(disk) {}
  // Whether the job has gone on without the generation: its order may have been under way for that long.
  void set_is_over(std::function<bool(const GenerationId&)> is_over) { is_over_ = std::move(is_over); }

  // `config` is "<workload>|<step>|<path>": what to do, and the checkpoint to go on from.
  void Start(const Rank& id, int world_size, const std::string& config, Outlet outlet);
  void Yield(const Rank& id);
  void Kill(const Rank& id, absl::Duration grace);
  void Answer(const Rank& id, const contract::CheckpointCommitReply& reply);
  void AnswerStore(const Rank& id, const contract::StoreReply& reply);

  // ---- faults ----
  void Fail(const Rank& id, agent::ExitRecord exit);
  // Its host is gone: nobody is left to say how it ended.
  void Vanish(const Rank& id);
  // Its next kill takes long: the process is in uninterruptible sleep.
  void Wedge(const Rank& id);
  // It ends at SIGKILL only.
  void Deafen(const Rank& id);
  // It stands still, and its peers with it: they wait in a collective.
  void Pause(const Rank& id, absl::Duration length);

  bool IsStalled(const GenerationId& generation) const;
  const std::vector<Rank>& Alive() const { return alive_; }
  std::vector<Rank> AliveOn(int host) const;

 private:
  struct Process {
    Outlet outlet;
    bool alive = true;
    bool arrived = false;  // has found its neighbour
    bool wedged = false;
    bool deaf = false;
    bool dying = false;
  };
  struct Group {
    int world_size = 0;
    Workload workload;
    int step = 0;
    absl::Duration step_began;
    absl::Duration stalled_until = absl::ZeroDuration();
    int64_t milestone = 0;  // number of the action that is awaited; older ones are void
    bool formed = false;
    bool broken = false;
    bool yielding = false;
    int64_t last_request = kFirstCommit;
    int64_t awaited_request = 0;  // the last checkpoint before the end
    std::map<int, Process> processes;
  };
  // Request numbers of a rank: the store's come first.
  static constexpr int64_t kSetAddress = 1, kCountArrivals = 2, kAwaitNeighbour = 3, kFirstCommit = 10;

  Process* Find(const Rank& id);
  void CheckExclusive(const Rank& id, const Outlet& outlet);
  void FormIfComplete(const GenerationId& id);
  void Form(const GenerationId& id);
  void ScheduleMilestone(const GenerationId& id);
  void ReachMilestone(const GenerationId& id, int64_t milestone, int target);
  void Save(const GenerationId& id, bool last);
  void YieldNow(const GenerationId& id);
  void ExitAll(const GenerationId& id, int code);
  void End(const Rank& id, agent::ExitRecord exit);
  void BreakGroup(const GenerationId& id);

  Simulation& sim_;
  SharedDisk& disk_;
  std::function<bool(const GenerationId&)> is_over_;
  std::map<GenerationId, Group> groups_;
  std::vector<Rank> alive_;  // in the order of their starts
};

}  // namespace llmctl::simulator
