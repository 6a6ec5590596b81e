// Runtime: the thin shell around the coordinator's core, as the RPC services see it.
//
// Changes go in as requests and facts and take effect in the core's order; reads come from snapshots and never
// wait for the core. core_loop.h says how the two are kept apart from a crash.
//
// Thread-safe. Callbacks must not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/classify/failure_rules.h"
#include "coordinator/core/event.h"
#include "coordinator/runtime/crash_marker.h"
#include "coordinator/runtime/event_reader.h"
#include "coordinator/runtime/gang_inspector.h"
#include "coordinator/runtime/host_links.h"
#include "coordinator/runtime/inbox.h"
#include "coordinator/runtime/log_broker.h"
#include "coordinator/runtime/metrics.h"
#include "coordinator/runtime/progress_board.h"
#include "coordinator/runtime/quarantine.h"
#include "coordinator/runtime/rank_board.h"
#include "coordinator/runtime/rendezvous_store.h"
#include "coordinator/runtime/reply_book.h"
#include "coordinator/runtime/snapshot_hub.h"
#include "coordinator/runtime/write_gate.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

using UserRequest = std::variant<core::JobSubmitted, core::JobCancelled, core::JobSuspended, core::JobResumed,
                                 core::JobDeleted, core::NodeCordoned, core::NodeUncordoned, core::NodeDrainStarted>;
using HostFact = std::variant<core::PreflightFinished, core::ProbeAnswered, core::RankChanged, core::GangReleased,
                              core::CheckpointOffered, core::JobHung, core::StragglerSeen>;

// What a heartbeat says of its host, for people to see.
struct HostReport {
  int standbys_ready = 0;
  int64_t standby_memory_bytes = 0;
};
struct HostPresence {
  absl::Time last_seen = absl::InfinitePast();  // if it was not heard of in this term
  HostReport report;
};

class Runtime {
 public:
  struct Options {
    absl::Duration lease = absl::Seconds(10);
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Known hosts count as alive for this long after a start, so that a restart of the coordinator costs no job
    // anything; never less than a lease.
    absl::Duration start_grace = absl::Seconds(60);
    size_t user_requests_max = 10000;
    size_t watch_changes_max = 4096;
    RendezvousStore::Limits rendezvous;
    std::shared_ptr<const classify::FailureRules> failure_rules = classify::FailureRules::Defaults();
    std::string build_id;
    // Where the process says what it is working on (crash_marker.h), and finds what an earlier one said; may be null.
    // It outlives the runtime.
    CrashMarker* crash_marker = nullptr;
    std::function<void(const absl::Status&)> on_fatal;
  };

  // Takes the next term in `store`, which must outlive the runtime, and loads it.
  static absl::StatusOr<std::unique_ptr<Runtime>> Start(Options options, store::Store& store);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Finishes what was accepted, closes the links, and ends. Whoever still waits for an answer is told so, and so is
  // whoever asks after it.
  void Stop();

  // ---- users ----
  // `done` comes when the outcome is durable; at once, on this thread, if the request cannot be taken.
  void Ask(UserRequest request, ReplyBook::Done done);
  std::shared_ptr<const Snapshot> snapshot() const { return hub_.Get(); }
  SnapshotHub& hub() { return hub_; }
  const ProgressBoard& progress() const { return progress_; }
  const RankBoard& ranks() const { return ranks_; }
  LogBroker& logs() { return logs_; }
  EventReader& events() { return events_; }

  // ---- hosts ----
  int64_t term() const { return term_; }
  const Options& options() const { return options_; }
  // A number for a new connection.
  int64_t NextLink() { return next_link_.fetch_add(1); }
  // `hello.link` is the connection's number; it is welcomed or refused. Disconnect() when it has ended.
  void Connect(core::WorkerConnected hello, std::shared_ptr<HostLink> connection);
  void Disconnect(int64_t link);
  // Renews the lease at once. `durable` is called, from the core's thread, when all that hosts have told before is
  // durable; while the store cannot commit that may be long after, or never: the next one of the same link stands for
  // it.
  void Heartbeat(int64_t link, const NodeId& node, int64_t incarnation, HostReport report,
                 std::function<void()> durable);
  void Tell(HostFact fact);
  // Of generations that are not live it is dropped, as with pulses.
  void ReportProgress(const GenerationId& generation, const Progress& progress);
  // What a host says of its ranks with a heartbeat; of generations that are not live it is dropped.
  void ReportPulses(const std::vector<RankPulse>& pulses);
  void DeliverInspection(const NodeId& node, int64_t request_id, std::vector<diagnosis::RankView> views);
  // Keys of a generation that is not the job's live one are refused.
  void Rendezvous(const GenerationId& generation, RendezvousStore::Asker asker, const StoreOperation& operation,
                  RendezvousStore::Answer answer);
  HostPresence Presence(const NodeId& node) const;

  // ---- operators ----
  std::string RenderMetrics() const;
  std::vector<Quarantine::Entry> ListQuarantine() const { return quarantine_.List(); }
  // Why the entity is refused, or OK.
  absl::Status CheckQuarantine(absl::string_view kind, absl::string_view id) const {
    return quarantine_.Check(kind, id);
  }
  // Forgets the crashes of an entity that is kept apart. NotFound: there is none such. `done` as with Ask().
  void ReleaseQuarantine(const std::string& entity, std::function<void(absl::Status)> done);
  // A copy of the store in a new file. Blocks while it is made.
  absl::Status Backup(const std::string& path) { return store_.Backup(path); }
  // Why changes are refused now, or OK.
  absl::Status Health() const { return gate_.Check(); }

 private:
  Runtime(Options options, store::Store& store, int64_t term, const core::State& state,
          const KeptApart& kept);
  void RunCore(core::State state);
  void JudgeProgress(const llmctl::Job& job, const std::vector<RankPulse>& pulses);
  void Inspect(const llmctl::Job& job, const HangWatch::Suspicion& suspicion);

  const Options options_;
  store::Store& store_;
  const int64_t term_;

  Inbox inbox_;
  SnapshotHub hub_;
  HostLinks links_;
  RendezvousStore rendezvous_;
  ProgressBoard progress_;
  RankBoard ranks_;
  GangInspector inspector_;
  LogBroker logs_;
  ReplyBook replies_;
  EventReader events_;
  WriteGate gate_;
  Quarantine quarantine_;
  Metrics metrics_;
  std::atomic<int64_t> next_link_{1};

  mutable Mutex mutex_;
  std::map<NodeId, HostPresence> presence_ ABSL_GUARDED_BY(mutex_);

  std::thread core_thread_;
};

}  // namespace llmctl::runtime
