// Simulated trainer processes: they form a group, take steps, save checkpoints, fail together, and end when told.
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
  };

  Trainers(Simulation& sim, SharedDisk& disk) : sim_(sim), disk_(disk) {}

  // `config` is "<workload>|<step>|<path>": what to do, and the checkpoint to go on from.
  void Start(const Rank& id, int world_size, const std::string& config, Outlet outlet);
  void Yield(const Rank& id);
  void Kill(const Rank& id, absl::Duration grace);
  void Answer(const Rank& id, const contract::CheckpointCommitReply& reply);

  // ---- faults ----
  void Fail(const Rank& id, agent::ExitRecord exit);
  // Its host is gone: nobody is left to say how it ended.
  void Vanish(const Rank& id);
  // Its next kill takes long: the process is in uninterruptible sleep.
  void Wedge(const Rank& id);
  void set_failures(bool on) { failures_ = on; }

  std::vector<Rank> Alive() const;
  std::vector<Rank> AliveOn(int host) const;

 private:
  struct Process {
    Outlet outlet;
    bool alive = true;
    bool ready = false;
    bool wedged = false;
    bool dying = false;
  };
  struct Group {
    int world_size = 0;
    Workload workload;
    int step = 0;
    absl::Duration step_began;
    int64_t milestone = 0;  // number of the action that is awaited; older ones are void
    bool formed = false;
    bool broken = false;
    bool yielding = false;
    int64_t last_request = 0;
    int64_t awaited_request = 0;  // the last checkpoint before the end
    std::map<int, Process> processes;
  };

  Process* Find(const Rank& id);
  void Form(const GenerationId& id);
  void ScheduleMilestone(const GenerationId& id);
  void Save(const GenerationId& id, bool last);
  void YieldNow(const GenerationId& id);
  void ExitAll(const GenerationId& id, int code);
  void End(const Rank& id, agent::ExitRecord exit);
  void BreakGroup(const GenerationId& id);

  Simulation& sim_;
  SharedDisk& disk_;
  bool failures_ = true;
  std::map<GenerationId, Group> groups_;
};

}  // namespace llmctl::simulator
