// The agent's shell: carries out what the supervisor (core/) asks for, and tells it what happens.
//
// One loop on the calling thread owns the supervisor, the shims and the files; gRPC's threads and the work queue
// only put things into the inbox. Each event is stepped, and its commands carried out in order, before the next.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/base/rng.h"
#include "common/base/unique_fd.h"
#include "worker/agent/agent_metrics.h"
#include "worker/agent/core/command.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/state.h"
#include "worker/agent/host/evidence_collector.h"
#include "worker/agent/host/loose_threads.h"
#include "worker/agent/host/preflight_run.h"
#include "worker/agent/host/shim_set.h"
#include "worker/agent/host/standby_set.h"
#include "worker/agent/host/state_dir.h"
#include "worker/agent/host/trainer_program.h"
#include "worker/agent/host/work_queue.h"
#include "worker/agent/rpc/coordinator_link.h"
#include "worker/agent/rpc/link_mapping.h"

namespace llmctl::v1 {
class Inspect;
class ReadLog;
}  // namespace llmctl::v1

namespace llmctl::agent {

class Inbox;

class Agent {
 public:
  struct Options {
    std::string coordinator;  // host:port or @FILE
    HostIdentity identity;    // without fabric_address if that follows the route
    TrainerProgram trainer;
    ShimSet::Options shims;
    StandbySet::Options standbys;
    int standbys_wanted = 0;
    PreflightRun::Options preflight;
    std::string evidence_program;  // empty: no evidence is collected
    UniqueFd signals;  // a signalfd: any signal on it ends Run()
  };
  Agent(Options options, StateDir state_dir, AgentMetrics& metrics);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Until a signal. Trainers go on.
  absl::Status Run();

 private:
  // ---- the loop ----
  void StepAll();
  // Whatever the kernel knows of why the rank ended.
  void AttachKernelLog(Event& event) const;
  void Execute(const Command& command);
  void Spawn(const SpawnShim& command);
  int PollTimeout(absl::Duration now) const;
  void FireTimers(absl::Duration now);

  // ---- the link ----
  void Dial(absl::Duration now);
  void Redial(absl::Duration now, const std::string& why);
  void DrainInbox(absl::Duration now);
  void HandleLinkMessage(const v1::CoordinatorMessage& message, absl::Duration now);
  void CancelSilentLink(absl::Duration now);
  void AnswerLogRequest(const v1::ReadLog& request);
  void AnswerInspection(const v1::Inspect& request, absl::Duration now);
  void SendToCoordinator(const AgentMessage& message);
  void CollectEvidence(const GenerationId& generation);
  void StartProbe(const ProbeOrdered& probe);
  void LookAtFiles(const std::string& nonce, std::function<void()> look);
  // One that was replaced ends the standbys, and is told to the coordinator with a new Hello.
  absl::Status LookAtTrainer();

  const std::string coordinator_;
  HostIdentity identity_;
  TrainerProgram trainer_;
  const bool fabric_follows_route_;
  const AllowedRoots roots_;
  const UniqueFd signals_;
  StateDir state_dir_;
  AgentMetrics& metrics_;
  const std::shared_ptr<Inbox> inbox_;

  State state_;
  std::deque<Event> events_;
  bool fences_lost_ = false;  // this step's PersistFences failed
  std::multimap<absl::Duration, int64_t> timers_;
  ShimSet shims_;
  StandbySet standbys_;

  bool dialling_ = false;  // the supervisor wants a link
  std::shared_ptr<CoordinatorLink> link_;
  int64_t link_number_ = 0;
  absl::Duration dial_at_;
  absl::Duration backoff_;
  absl::Duration heard_at_;
  absl::Duration silence_max_;
  SeededRng jitter_;

  PreflightRun preflight_;
  EvidenceCollector evidence_;
  LooseThreads probes_;  // by nonce: its file is removed after it was written
  WorkQueue work_;  // last: its jobs use the rest
};

}  // namespace llmctl::agent
