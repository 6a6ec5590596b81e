// The state of the core: everything that decisions are made from.
//
// Load(store) == State but for the fields marked volatile, at every moment between two commits; the simulator
// checks that at each crash point. Ordered containers throughout: their order reaches commands.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "coordinator/classify/failure_rules.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"
#include "coordinator/model/plan.h"

namespace llmctl::core {

// Stored counters: ids never come from time or chance.
struct Counters {
  int64_t next_job = 1;
  int64_t revision = 0;  // +1 with every step that changed a record
  bool operator==(const Counters&) const = default;
};

// What a timer is for.
struct Timer {
  enum class Purpose {
    kBackoff,    // the job may be queued again
    kProbe,      // the hosts of a gang should have answered the checks
    kStart,      // all ranks should be ready
    kStop,       // all hosts should have released the gang
    kTimeLimit,  // the job has run for its time limit
    kGrace,      // after a start of the coordinator: hosts that are still silent are lost
    kDrain,      // the jobs should have left the node
    kPreflight,  // the node has been idle for long enough to be tested
    kBurnIn,     // the node's burn-in may be tried again
    kParole,     // the node's parole is over
  };
  Purpose purpose;
  JobId job;  // empty for kGrace and the timers of nodes
  int64_t generation = 0;
  int round = 0;  // of kStop: how often the hosts have been reminded
  NodeId node = NodeId();  // of kDrain and what follows it
};

// Do the hosts of a gang see the same files? The first writes a nonce, then the others read it.
struct GangCheck {
  // A host that does not find the nonce is not believed at once (see kProbeRounds). Each round has its own nonce.
  int round = 0;
  std::map<NodeId, std::string> digests;  // of the dataset that each host sees, in this round
};

// One life of a host's agent in one life of its kernel.
struct HostLife {
  std::string boot_id;
  int64_t incarnation = 0;
  bool operator==(const HostLife&) const = default;
};

// Jobs by phase, so that nothing has to look through those that have ended or only wait. Brought up to date at the end
// of each step (job_index.h).
struct JobIndex {
  std::set<JobId> queued;
  std::set<JobId> newcomers;  // queued, and in no plan yet
  std::set<JobId> with_gang;  // HasLiveGang()
  bool operator==(const JobIndex&) const = default;
};

struct State {
  // Given at the start, and never changed: how exits are diagnosed.
  std::shared_ptr<const classify::FailureRules> rules = classify::FailureRules::Defaults();

  Counters counters;
  std::map<JobId, Job> jobs;
  std::map<NodeId, Node> nodes;

  // ---- volatile: rebuilt from the records, or gained anew after a restart ----
  std::map<std::string, JobId> jobs_by_key;  // project + idempotency key
  // Who may have a process on a device. A host that is not connected has no free devices whatever this says;
  // its Hello replaces what stands here for it.
  std::map<std::pair<NodeId, int>, GenerationId> device_owner;
  std::set<NodeId> connected;  // have had a Hello in this term, and a lease since
  // The newest agents of a node's boots, oldest first, and the last few only: whose Hello is a dead agent's.
  std::map<NodeId, std::vector<HostLife>> lives;
  std::map<int64_t, Timer> timers;
  int64_t next_timer = 1;
  std::map<JobId, GangCheck> checks;
  // Hosts whose checks of a job were passed, and whose ranks have all been ready after it: as long as they live on, the
  // job's next gang on them need not wait for checks.
  std::map<JobId, std::map<NodeId, HostLife>> proven_hosts;
  // Of queued jobs that a plan has left out. Queued jobs without one are the newcomers.
  std::map<JobId, std::string> waiting_reason;
  // Numbers of the pre-flights that hosts were told to run on their present links; 0: about to be.
  std::map<NodeId, int64_t> preflights;
  std::set<NodeId> unsettled;  // nodes whose standing changes by itself: looked at after every step
  std::map<JobId, absl::Duration> run_time_since;  // monotonic: up to when Job::run_time is accounted for
  JobIndex index;
  // How often devices have become free or could have: what a plan has left out stays out until this moves on. The plan
  // of the whole queue that was applied last saw `planned_room`.
  int64_t room = 1;
  int64_t planned_room = 0;
};

}  // namespace llmctl::core
