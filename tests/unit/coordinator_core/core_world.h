// A coordinator core in a test's hands: hosts answer when the test says so, time passes when the test says so.
//
// After every step all invariants are checked, that the records of Persist commands are the whole state, and that no
// node stays behind what its standing allows.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"

#include "coordinator/core/step.h"

namespace llmctl::core {

class CoreWorld {
 public:
  CoreWorld();

  // Commands of the step, which are also kept for Sent<>().
  const std::vector<Command>& Do(const Event& event);
  // Timers that are due on the way fire in order.
  void Advance(absl::Duration duration);
  // Kills the coordinator and starts another on its records.
  void Restart();

  // Kills the coordinator, and has the next one take the job out of play.
  void Hold(const JobId& job, const std::string& why);
  void Bury(const JobId& job, const std::string& why);
  // As a restore from a backup leaves the job's record.
  void RaiseFloor(const JobId& job, int64_t floor);

  // ---- hosts ----
  // The host says hello again, able to do this.
  void Capable(const std::string& name, std::set<std::string> capabilities);
  static Node MakeNode(const std::string& name, int devices = 1);
  void Connect(const std::string& name, int devices = 1);
  // The same agent again, with these shims.
  void Reconnect(const std::string& name, std::vector<ShimReport> shims);
  void Lose(const std::string& name);
  // Something speaks against the host.
  void Struck(const std::string& name, Strike strike);
  // What a host would report of the ranks that the core believes to run there.
  std::vector<ShimReport> ShimsOf(const std::string& name) const;
  void Release(const JobId& job, const std::string& name);
  void ReleaseAll(const JobId& job);

  // ---- jobs ----
  static JobRequirements Needs(int workers, int devices_per_worker = 1);
  JobId Submit(JobRequirements requirements = Needs(1), const std::string& key = "");
  // Placement, applied.
  void Place();
  // The host's answer to the check that it was last sent: the dataset that it sees, or what is wrong.
  ProbeAnswered Passed(const JobId& job, const std::string& node, const std::string& digest = "d") const;
  ProbeAnswered NotPassed(const JobId& job, const std::string& node, const std::string& error) const;
  void AnswerProbes(const JobId& job, const std::string& digest = "d");
  void ReportAll(const JobId& job, RankPhase phase);
  // From queued to running.
  void Run(const JobId& job);
  void Exit(const JobId& job, int rank, RankExit exit);
  void ExitAll(const JobId& job, RankExit exit);
  void Commit(const JobId& job, int64_t step);
  void FailOnce(const JobId& job, RankExit exit);  // rank 0 fails, the others are stopped, all are released

  const Job& job(const JobId& id) const { return state.jobs.at(id); }
  GenerationId generation(const JobId& id) const;
  std::string reason(const JobId& id) const { return job(id).reason; }
  // Kinds of the job's history.
  std::vector<std::string> History(const JobId& id) const;
  std::string HistoryText(const JobId& id, const std::string& kind) const;

  template <typename T>
  std::vector<T> Sent() const {
    std::vector<T> found;
    for (const Command& command : last) {
      if (const T* one = std::get_if<T>(&command)) found.push_back(*one);
    }
    return found;
  }
  absl::Status LastReply() const;

  State state;
  Instant now;
  std::vector<Command> last;

 private:
  void Take(std::vector<Command> commands);
  void CheckStore();
  void CheckSettled();
  void Keep(const Command& command);

  State store_;
  std::map<JobId, std::vector<JobEventRecord>> history_;
  std::map<NodeId, std::string> nonces_;  // of the last check sent to each host
  std::multimap<absl::Duration, int64_t> deadlines_;
  int64_t next_link_ = 1;
  int64_t next_request_ = 1;
};

inline RankExit ExitCode(int code, std::string message = "") {
  RankExit exit;
  exit.exit_code = code;
  exit.fatal_message = std::move(message);
  return exit;
}
inline RankExit KilledBy(int signal) {
  RankExit exit;
  exit.signal = signal;
  return exit;
}
inline RankExit StoppedByAgent() {
  RankExit exit;
  exit.signal = 15;
  exit.stopped_by_agent = true;
  return exit;
}

}  // namespace llmctl::core
