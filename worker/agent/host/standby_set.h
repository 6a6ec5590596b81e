// The standbys of this host: trainers that have loaded their program and wait for a job, each under a shim of its own.
//
// One directory per standby below <state-dir>/standby. What happens to one comes out as events of the supervisor:
//
//   Start -> StandbyConnected -> StandbyReady -> Take: its directory and link are the rank's
//   Find  ----^      |                |
//                    +----------------+--------> StandbyEnded (also after End)
//
// A standby that an earlier agent left is taken over if it is what we would start: the same build, command and
// environment; otherwise it is ended. Never blocks but on local files. Not thread-safe: the agent's main loop polls
// Descriptors() and calls Handle().
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/base/unique_fd.h"
#include "worker/agent/core/command.h"
#include "worker/agent/core/event.h"
#include "worker/agent/host/shim_process.h"
#include "worker/agent/host/trainer_program.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {

class StandbySet {
 public:
  struct Options {
    std::string standbys;  // the directory above them
    std::string shim_program;
    std::vector<std::string> environment;  // "NAME=value"
    int64_t log_bytes_max = 256 << 20;     // per stream
    // Long enough for an agent to be started again.
    double orphan_timeout_seconds = 10;
  };
  // `trainer` outlives the set; when it turns out to have been replaced, its user ends them all.
  StandbySet(Options options, const TrainerProgram& trainer, std::function<void(Event)> sink);

  // Emits StandbyConnected for each that an earlier agent left and that can be used; ends the rest. Returns the first
  // number that none of them has: those that are ended keep theirs, and their directories, until they are gone.
  [[nodiscard]] int64_t FindAll();
  // `number` is no other's.
  void Start(int64_t number);
  void End(int64_t number);
  // The agent stops and leaves no process behind that nobody asked for, or they run what is no longer wanted.
  void EndAll();

  struct Taken {
    std::string directory;
    std::unique_ptr<contract::LineLink> link;
  };
  // Gives up the standby: its shim has yet to be told. Unavailable: it has just ended.
  absl::StatusOr<Taken> Take(int64_t number);

  std::vector<pollfd> Descriptors() const;
  void Handle(const pollfd& ready);

 private:
  struct Standby {
    std::string directory;
    StartingShim starting;  // until its program has returned
    std::unique_ptr<contract::LineLink> link;
    int64_t pid = 0;      // of the trainer
    bool wanted = true;   // false: it is only waited for until it has ended
  };

  contract::StandbyConfig Config(const std::string& directory) const;
  std::string DirectoryOf(int64_t number) const;
  void Adopt(int64_t number, const std::string& directory);
  void EndStart(int64_t number, Standby& standby);
  void ReadLink(int64_t number, Standby& standby);
  void Forget(int64_t number, const std::string& why);

  const Options options_;
  const TrainerProgram& trainer_;
  const std::function<void(Event)> sink_;
  std::map<int64_t, Standby> standbys_;
};

}  // namespace llmctl::agent
