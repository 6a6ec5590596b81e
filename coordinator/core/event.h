// Everything that can happen to the coordinator's core. The vocabulary is closed: std::visit without a default
// arm makes a new event fail to compile until every place handles it.
//
// Events are facts, in the past tense. Requests of users carry a `request` number that the reply command
// repeats; it means nothing to the core. Heartbeats, progress, logs and rendezvous keys are not events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"
#include "coordinator/model/plan.h"

namespace llmctl::core {

using RequestId = int64_t;

struct JobSubmitted {
  RequestId request = 0;
  std::string name;
  std::string project;
  std::map<std::string, std::string> labels;
  std::string spec;
  JobRequirements requirements;
  std::string idempotency_key;
};
struct JobCancelled {
  RequestId request = 0;
  JobId job;
  std::string reason;
};
struct JobSuspended {
  RequestId request = 0;
  JobId job;
};
struct JobResumed {
  RequestId request = 0;
  JobId job;
};
struct JobDeleted {
  RequestId request = 0;
  JobId job;
};

// No new ranks there.
struct NodeCordoned {
  RequestId request = 0;
  NodeId node;
  std::string reason;
};
// Ranks again, whatever closed it.
struct NodeUncordoned {
  RequestId request = 0;
  NodeId node;
};
// No new ranks there, and those that it has are to go on elsewhere within `deadline`.
struct NodeDrainStarted {
  RequestId request = 0;
  NodeId node;
  std::string reason;
  absl::Duration deadline;
};

// A shim that a host still has, from its Hello.
struct ShimReport {
  GenerationId generation;
  int rank = 0;
  int device = 0;
  RankPhase phase = RankPhase::kStarting;
  int64_t pid = 0;
  std::optional<RankExit> exit;
};
struct WorkerConnected {
  Node node;
  int64_t link = 0;  // the runtime's number of the connection; AdmitWorker or RefuseWorker repeats it
  std::vector<ShimReport> shims;
};
// Its lease ran out and its link is closed. (That a newer incarnation took its place is told by the
// WorkerConnected of that one.)
struct WorkerLost {
  NodeId node;
  int64_t incarnation = 0;
  std::string reason;
};

// The pre-flight of this number has ended.
struct PreflightFinished {
  NodeId node;
  int64_t number = 0;
  bool interrupted = false;  // a job came first: nothing was found out
  PreflightReport report;    // without time and boot
};
struct ProbeAnswered {
  NodeId node;
  GenerationId generation;
  bool ok = false;
  std::string error;
  std::string dataset_digest;
  std::string nonce;  // of the ProbeHost that is answered
  bool infrastructure = false;  // not passed because of the host or the file system, not of what the job asks for
};
struct RankChanged {
  NodeId node;
  GenerationId generation;
  int rank = 0;
  RankPhase phase = RankPhase::kStarting;
  int64_t pid = 0;
  std::optional<RankExit> exit;  // when phase is kExited
};
// No process of the generation is left on the node.
struct GangReleased {
  NodeId node;
  GenerationId generation;
};
struct CheckpointOffered {
  NodeId node;
  GenerationId generation;
  int64_t request_id = 0;  // the trainer's
  CheckpointRecord checkpoint;
};
// None of the job's ranks gets anywhere (runtime/hang_watch.h), and their hosts have been asked why.
struct JobHung {
  GenerationId generation;
  std::string text;  // which rank is waited for, for a person
  std::vector<int> suspects = {};  // the ranks that it waits for; empty: none stands out
};
// A rank makes the others wait, or no longer does. Nothing is decided by it.
struct StragglerSeen {
  GenerationId generation;
  std::string text;
};

struct PlanReady {
  Plan plan;
};
struct TimerFired {
  int64_t timer = 0;
};
// The state has been loaded (start or failover): the first event. Known hosts that have not said Hello when
// `grace` has passed count as lost; until then their ranks are taken to be running.
struct CoordinatorStarted {
  absl::Duration grace = absl::Seconds(60);
};

using Event = std::variant<JobSubmitted, JobCancelled, JobSuspended, JobResumed, JobDeleted, NodeCordoned,
                           NodeUncordoned, NodeDrainStarted, WorkerConnected, WorkerLost, PreflightFinished,
                           ProbeAnswered, RankChanged, GangReleased, CheckpointOffered, JobHung, StragglerSeen,
                           PlanReady, TimerFired,
                           CoordinatorStarted>;

}  // namespace llmctl::core
