// Job and Attempt: what the coordinator decides about. Values only.
//
// The specification is kept as opaque bytes; beside it stand just the inputs of decisions. A job's life:
//
//   Queued -> Starting -> Running -> Stopping -> {Succeeded, Failed, Cancelled, Suspended, Backoff}
//     ^                                                                         Suspended -> Queued
//     +-------------------------------------------------------------------------- Backoff -> Queued
//
// Succeeded, Failed and Cancelled are terminal: never left again. A gang (the ranks of one attempt) is live in
// Starting, Running and Stopping.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "coordinator/model/failure.h"

namespace llmctl {

enum class JobPhase {
  kQueued,
  kStarting,
  kRunning,
  kStopping,
  kBackoff,
  kSuspended,
  kSucceeded,
  kFailed,
  kCancelled,
};
bool IsTerminal(JobPhase phase);
// Starting, Running or Stopping: the job's attempt may have processes and owns its devices.
bool HasLiveGang(JobPhase phase);
const char* JobPhaseName(JobPhase phase);

// What of the specification the coordinator decides by.
struct JobRequirements {
  int workers_min = 1;
  int workers_max = 1;
  int devices_per_worker = 1;
  int data_parallel = 0;  // 0: as many as devices
  int global_batch_size = 1;
  int micro_batch_size = 1;
  int priority = 50;
  int max_restarts = 0;
  int max_attempts_without_progress = 3;
  absl::Duration time_limit = absl::InfiniteDuration();
  absl::Duration hang_after = absl::ZeroDuration();  // zero: by the job's own step times
  std::string checkpoint_directory;
  std::string dataset;
  int keep_last = 2;
  bool operator==(const JobRequirements&) const = default;
};

// Whether a gang of `world_size` ranks can train the job: the layout asked for, and a sequence for every rank.
bool WorldSizeAllowed(const JobRequirements& requirements, int world_size);

enum class RankPhase { kAssigned, kStarting, kRunning, kExited };
const char* RankPhaseName(RankPhase phase);

struct RankExit {
  int exit_code = 0;
  int signal = 0;
  std::string fatal_class;
  std::string fatal_message;
  bool stopped_by_agent = false;
  bool start_failed = false;
  std::string log_tail;
  std::string kernel_log;  // what the kernel said about the process and its devices
  Diagnosis diagnosis;     // made when the exit was reported; empty if it is no failure
  bool operator==(const RankExit&) const = default;
};

struct RankState {
  NodeId node;
  int device = 0;
  RankPhase phase = RankPhase::kAssigned;
  int64_t pid = 0;
  std::optional<RankExit> exit;
  int exit_order = 0;  // 1 for the first rank of the gang that was seen to exit, ...
  bool operator==(const RankState&) const = default;
};

// What ended a gang where it was not one of its ranks: a lost host, a missed deadline, a failed check.
struct GangFailure {
  Diagnosis diagnosis;
  std::string text;
  NodeId node = NodeId();  // whose doing it may be; empty: nobody's in particular
  bool operator==(const GangFailure&) const = default;
};

// Whether a gang's ranks have been asked to end though nothing had failed.
enum class StopRequest {
  kNone,
  kPlain,
  kYield,  // after a checkpoint
};

// One go at a job: a gang of ranks from durable state.
struct Attempt {
  int64_t number = 0;
  int64_t generation = 0;
  std::vector<RankState> ranks;  // by rank; stable over restarts where nodes allow
  // StartRanks may have been sent. Before that no host has a process of this generation.
  bool ranks_requested = false;
  // Nodes that still may have processes of this generation.
  std::vector<NodeId> unreleased;
  std::optional<GangFailure> failure;  // the first
  StopRequest stop = StopRequest::kNone;
  std::string stop_reason;  // why, where it was not the job's user who asked
  absl::Time start_time = absl::InfinitePast();
  int64_t start_checkpoint_step = 0;  // what it began from; 0 is a fresh start
  std::string trainer_digest;         // of all its hosts; a host whose trainer is another by now gets no rank of it
  // A checkpoint that is newer than all that are recorded may lie on disk: the store was restored from a backup.
  bool search_checkpoints = false;
  bool operator==(const Attempt&) const = default;
};

// What is kept of an attempt that another has followed: where its logs are.
struct PastAttempt {
  int64_t number = 0;
  int64_t generation = 0;
  std::vector<NodeId> nodes;  // by rank
  bool operator==(const PastAttempt&) const = default;
};

struct CheckpointRecord {
  int64_t step = 0;
  int64_t attempt = 0;
  int64_t generation = 0;
  std::string path;
  std::string manifest_digest;
  int64_t next_sample = 0;
  absl::Time commit_time = absl::InfinitePast();
  bool operator==(const CheckpointRecord&) const = default;
};

struct JobEventRecord {
  int64_t sequence = 0;
  absl::Time time = absl::InfinitePast();
  int64_t attempt = 0;
  int64_t generation = 0;
  std::string kind;
  std::string text;
  bool operator==(const JobEventRecord&) const = default;
};

struct Job {
  JobId id;
  std::string name;
  std::string project;
  std::map<std::string, std::string> labels;
  std::string spec;  // serialized llmctl.v1.JobSpec, opaque here
  JobRequirements requirements;
  std::string idempotency_key;

  JobPhase phase = JobPhase::kQueued;
  std::string reason;  // why it is in this phase, for a person; queued: why it is back there, may be empty
  // Of the newest failure, whether it was retried or final.
  Diagnosis failure;
  std::string first_cause;  // which rank, where, what
  // When the next attempt is tried, while the job is in back-off; for display.
  absl::Time retry_time = absl::InfinitePast();
  // What Stopping leads to once all hosts have released the gang: the first of these that is set, else what
  // the restart policy makes of the failure.
  bool cancel_requested = false;
  std::string cancel_reason;
  bool time_limit_reached = false;
  bool suspend_requested = false;

  int64_t last_attempt = 0;     // counters: persisted before anything carrying them is sent
  int64_t last_generation = 0;
  // Generations up to this one may have been handed out, though the store that knew of them is lost: a restored
  // store's. The next generation is beyond it.
  int64_t generation_floor = 0;
  bool quarantined = false;  // suspended because it crashed the coordinator, until a user resumes it
  bool stand_in = false;     // for a record that cannot be worked with (stand_in.h): it cannot be resumed
  int user_restarts = 0;
  std::map<std::string, int> limited_retries;  // by Diagnosis::budget
  // Sequences a rank takes at once, halved each time that a device's memory did not suffice; at most the
  // specification's. A global batch is then made of more of them.
  int micro_batch_size = 1;
  // Since the checkpoint last advanced; gives the back-off and the no-progress cap.
  int infrastructure_failures = 0;
  absl::Duration backoff = absl::ZeroDuration();  // the one being waited for
  // Since the checkpoint last advanced: nodes on which the job would fail again, avoided where others fit, and nodes
  // that its failures have spoken against.
  std::vector<NodeId> avoided_nodes;
  std::vector<NodeId> accused_nodes;

  std::optional<Attempt> attempt;  // the newest; live while the phase says so
  std::vector<PastAttempt> past_attempts;  // those before it that may have had processes, oldest first, bounded
  std::vector<CheckpointRecord> checkpoints;  // committed, oldest first, at most keep_last
  // How long all ranks have run together. Brought up to date with each commit of a checkpoint and at the end of
  // an attempt, so a coordinator restart forgets at most the time since the last commit.
  absl::Duration run_time = absl::ZeroDuration();
  absl::Time submit_time = absl::InfinitePast();
  absl::Time start_time = absl::InfinitePast();
  absl::Time end_time = absl::InfinitePast();
  int64_t last_event = 0;
  bool operator==(const Job&) const = default;
};

}  // namespace llmctl
