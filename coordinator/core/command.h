// Everything the core can ask for. The runtime commits the Persist commands of a step (with others, in one
// transaction) before it carries out any of the rest, so nothing outside ever sees what a crash could undo.
//
// Every command is idempotent by (job, attempt, generation): doing it twice is harmless. Commands to a host whose
// link is down are dropped: its next WorkerConnected makes the core send what still applies.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "coordinator/core/event.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl::core {

// ---- records ---------------------------------------------------------------------------------------------
struct PersistJob {
  JobId job;  // its present value in State
};
struct ForgetJob {
  JobId job;
};
struct PersistNode {
  NodeId node;
};
struct AppendJobEvent {
  JobId job;
  JobEventRecord event;
};
struct PersistCounters {};

// ---- to hosts --------------------------------------------------------------------------------------------
struct ProbeHost {
  NodeId node;
  GenerationId generation;
  std::string checkpoint_directory;
  std::string dataset;
  std::string nonce;
  bool write = false;
};
// Test the host, in a process that any start of ranks cuts short. PreflightFinished follows.
struct RunPreflight {
  NodeId node;
  int64_t number = 0;
};
struct StartRanks {
  NodeId node;
  GenerationId generation;
  // The whole gang; the runtime sends the node its own ranks and everybody's addresses.
  std::vector<Slot> slots;
  std::string spec;
  int micro_batch_size = 1;  // in place of the specification's
  std::vector<CheckpointRecord> checkpoints;  // newest first
  std::string trainer_digest;
  bool search_checkpoints = false;
};
struct StopRanks {
  NodeId node;
  GenerationId generation;
  absl::Duration grace = absl::ZeroDuration();
  bool checkpoint_first = false;
  bool failed = false;  // part of the gang has: the collectives of the rest cannot complete
  std::string reason;
};
struct AnswerCheckpoint {
  NodeId node;
  GenerationId generation;
  int64_t request_id = 0;
  bool committed = false;
  std::string error;
  std::vector<std::string> removable_paths;
};
// The host is welcome: from now on commands to it go over this link, an older one is closed, its lease begins.
// Comes before every other command to the host in the same step.
struct AdmitWorker {
  NodeId node;
  int64_t incarnation = 0;
  int64_t link = 0;
};
// The link is closed and its agent told why; the link that the host has otherwise stays.
struct RefuseWorker {
  NodeId node;
  int64_t incarnation = 0;
  int64_t link = 0;
  std::string reason;
};

// ---- inward ----------------------------------------------------------------------------------------------
// Answer a user. `job` may be empty (an error, deleted, or the request was about a node).
struct ReplyToUser {
  RequestId request = 0;
  absl::Status status;
  JobId job;
  bool already_existed = false;
};
// TimerFired{timer} after `delay`. Timers are not persisted: CoordinatorStarted arms them anew.
struct ArmTimer {
  int64_t timer = 0;
  absl::Duration delay;
  // It bounds how long hosts may take: time in which the runtime could not hear them does not count.
  bool awaits_others = false;
};
// PlanReady, soon: placement runs on a snapshot of the state as it is after this step. Asked for with every
// change that could matter; while a plan is being made, the runtime remembers one more request.
struct RequestPlan {};
// The generation is over: forget its rendezvous keys.
struct DropRendezvous {
  GenerationId generation;
};

using Command = std::variant<PersistJob, ForgetJob, PersistNode, AppendJobEvent, PersistCounters, ProbeHost,
                             RunPreflight, StartRanks, StopRanks, AnswerCheckpoint, AdmitWorker, RefuseWorker,
                             ReplyToUser, ArmTimer, RequestPlan, DropRendezvous>;

}  // namespace llmctl::core
