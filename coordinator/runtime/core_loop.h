// CoreLoop: the one thread that owns the core's state.
//
// **Persist before send.** The loop gives each event to the core's Step(), puts the record changes into the
// commit pipeline, and carries out what Step() wants of the outside (commands to hosts, answers to users) only
// when the commit that holds them is durable. The commit is conditional on this coordinator's own term; one that
// is refused by term ends the process, and a restart loads what the new writer has. A full or failing disk makes
// the service refuse users' writes and retry; nothing is lost meanwhile, for nothing has left. Users who wait are told
// after a second that it is not known what will become of their request. Every command is idempotent by (job, attempt,
// generation).
//
// Steps go on while a batch is being committed: the next batch gathers, and one fsync serves many steps.
//
// Time: all deadlines are monotonic. When the loop itself was held up for longer than it ever chooses to wait, the
// renewals that were queued are applied first, and all leases and all waits for others' answers last longer by the time
// it was away: what was said meanwhile may still be unread. After a whole lease the hosts have hung up: they also get
// the time to connect again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "coordinator/core/command.h"
#include "coordinator/core/event.h"
#include "coordinator/core/state.h"
#include "coordinator/runtime/commit_pipeline.h"
#include "coordinator/runtime/commit_thread.h"
#include "coordinator/runtime/gang_inspector.h"
#include "coordinator/runtime/host_links.h"
#include "coordinator/runtime/inbox.h"
#include "coordinator/runtime/lease_table.h"
#include "coordinator/runtime/log_broker.h"
#include "coordinator/runtime/metrics.h"
#include "coordinator/runtime/planning_thread.h"
#include "coordinator/runtime/progress_board.h"
#include "coordinator/runtime/quarantine.h"
#include "coordinator/runtime/rank_board.h"
#include "coordinator/runtime/rendezvous_store.h"
#include "coordinator/runtime/reply_book.h"
#include "coordinator/runtime/snapshot_hub.h"
#include "coordinator/runtime/timer_queue.h"
#include "coordinator/runtime/write_gate.h"

namespace llmctl::runtime {

class CoreLoop {
 public:
  struct Options {
    absl::Duration lease;
    absl::Duration start_grace;
    // Hears what is being stepped; may be null.
    Focus* focus = nullptr;
    // The store can no longer be trusted, or belongs to another coordinator: the process must end.
    std::function<void(const absl::Status&)> on_fatal;
  };
  // What the loop works with; all of it outlives the loop.
  struct Parts {
    Inbox& inbox;
    SnapshotHub& hub;
    HostLinks& links;
    RendezvousStore& rendezvous;
    ProgressBoard& progress;
    RankBoard& ranks;
    GangInspector& inspector;
    LogBroker& logs;
    ReplyBook& replies;
    WriteGate& gate;
    Quarantine& quarantine;
    Metrics& metrics;
  };

  CoreLoop(Options options, Parts parts, core::State state, store::Store& store, int64_t term);

  // On the core's thread; returns when the inbox says stop and what was accepted is durable, or after a fatal
  // error.
  void Run();

 private:
  void TakeItem(Inbox::Item& item, Instant now);
  void Deliver(const core::Event& event, Instant now) { Queue(Step(event, now)); }
  StepOutput Step(const core::Event& event, Instant now);
  std::vector<core::Command> StepWatched(const core::Event& event, Instant now);
  void Queue(StepOutput output) { pipeline_.Add(std::move(output)); }
  void CarryOut(const core::Command& command);
  void CarryOutInward(const core::Command& command, Instant now);
  void MakeUpForStall(Instant now);
  void ExpireLeases(Instant now);
  void FireTimers(Instant now);
  void HandleCommit(const absl::Status& outcome, Instant now);
  void HandleFailedCommit(const absl::Status& outcome, Instant now);
  void StartCommit(Instant now);
  void StartPlan(Instant now);
  void TakePlan(core::PlanReady& plan, Instant now);
  void ReleaseDurable();
  absl::Duration NextWake(Instant now) const;

  const Options options_;
  const Parts parts_;
  const absl::Duration tick_;

  core::State state_;
  LeaseTable leases_;
  CommitPipeline pipeline_;
  TimerQueue timers_;
  Instant last_round_;
  bool plan_wanted_ = false;
  bool planning_ = false;
  absl::Duration plan_begun_ = -absl::InfiniteDuration();  // monotonic
  absl::Duration planning_cost_ = absl::ZeroDuration();  // of the last plan, on this thread
  absl::Duration plan_not_before_ = -absl::InfiniteDuration();  // monotonic
  bool fatal_ = false;
  absl::Duration retry_at_ = -absl::InfiniteDuration();  // monotonic
  absl::Duration retry_delay_ = absl::ZeroDuration();  // zero: the last commit succeeded
  absl::Duration failing_since_ = absl::ZeroDuration();  // monotonic

  // Last: their threads end before the fields above go.
  CommitThread committer_;
  PlanningThread planner_;
};

}  // namespace llmctl::runtime
