#include "coordinator/runtime/runtime.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/step.h"
#include "coordinator/runtime/core_loop.h"
#include "coordinator/runtime/hang_verdict.h"
#include "coordinator/runtime/step_output.h"

namespace llmctl::runtime {
namespace {

// A host reads a piece of a file and sends it: anything longer is a host in trouble.
constexpr absl::Duration kLogPatience = absl::Seconds(10);
// A host looks at some small files. One that does not answer will not be waited for by a gang that hangs anyway.
constexpr absl::Duration kInspectionPatience = absl::Seconds(3);
// A read takes well below a millisecond; that many wait only while the disk stands still.
constexpr size_t kEventReadsMost = 256;

std::optional<Focus> FocusOf(const Runtime::Options& options) {
  if (options.crash_marker == nullptr) return std::nullopt;
  return options.crash_marker->focus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options, store::Store& store) {
  LLM_ASSIGN_OR_RETURN(int64_t term, store.AcquireTerm());
  KeptApart kept;
  LLM_ASSIGN_OR_RETURN(kept.crashes, CountCrash(options.crash_marker, store, term, Now()));
  LLM_ASSIGN_OR_RETURN(store::Records records, store.Load());
  kept.damaged = std::move(records.damaged);
  kept.kept_before = std::move(records.damaged_before);
  kept.recovered = std::move(records.recovered);
  std::optional<Focus> focus = FocusOf(options);
  core::State state = StateFromRecords(std::move(records), focus.has_value() ? &*focus : nullptr);
  state.rules = options.failure_rules;
  std::vector<store::Change> changes = ApplyQuarantine(kept, state, Now());
  if (!changes.empty()) {
    LLM_RETURN_IF_ERROR(store.Commit(term, changes));
    core::RestoreVolatile(state);
  }
  Log(LogLevel::kInfo, "store-loaded",
      {{"term", term}, {"jobs", state.jobs.size()}, {"nodes", state.nodes.size()},
       {"revision", state.counters.revision}});
  auto runtime = std::unique_ptr<Runtime>(new Runtime(std::move(options), store, term, state, kept));
  runtime->core_thread_ = std::thread([r = runtime.get(), state = std::move(state)]() mutable {
    r->RunCore(std::move(state));
  });
  return runtime;
}

Runtime::Runtime(Options options, store::Store& store, int64_t term, const core::State& state,
                 const KeptApart& kept)
    : options_(std::move(options)),
      store_(store),
      term_(term),
      inbox_(options_.user_requests_max),
      hub_(state, options_.watch_changes_max),
      rendezvous_(options_.rendezvous),
      ranks_(options_.heartbeat_interval),
      inspector_(links_, kInspectionPatience),
      logs_(links_, kLogPatience),
      events_(store, kEventReadsMost),
      quarantine_(kept),
      metrics_({.version = options_.build_id, .term = term}) {}

Runtime::~Runtime() { Stop(); }

void Runtime::RunCore(core::State state) {
  std::optional<Focus> focus = FocusOf(options_);
  CoreLoop loop({.lease = options_.lease,
                 .start_grace = std::max(options_.start_grace, options_.lease),
                 .focus = focus.has_value() ? &*focus : nullptr,
                 .on_fatal = options_.on_fatal},
                {inbox_, hub_, links_, rendezvous_, progress_, ranks_, inspector_, logs_, replies_, gate_, quarantine_,
                 metrics_},
                std::move(state), store_, term_);
  loop.Run();
}

void Runtime::Stop() {
  if (!core_thread_.joinable()) return;
  const absl::Status stopping = absl::UnavailableError("the coordinator is stopping: try again when it is back");
  gate_.Stop(stopping);
  inbox_.Stop();
  core_thread_.join();
  hub_.Close();
  links_.CloseAll("the coordinator is stopping");
  replies_.Close(absl::UnavailableError("the coordinator stopped before this was decided: ask again later"));
  logs_.Close(stopping);
  events_.Close(stopping);
}

void Runtime::Ask(UserRequest request, ReplyBook::Done done) {
  absl::Status open = gate_.Check();
  if (const auto* submitted = std::get_if<core::JobSubmitted>(&request); submitted != nullptr && open.ok()) {
    open = quarantine_.Check(core::kSubmissionEntity, core::SubmissionId(*submitted));
  }
  if (!open.ok()) return done({.status = std::move(open)});
  core::RequestId id = replies_.Enter(std::move(done));
  core::Event event = std::visit(
      [&](auto& r) {
        r.request = id;
        return core::Event(std::move(r));
      },
      request);
  if (!inbox_.Post(Priority::kUser, std::move(event))) {
    replies_.Answer(id, {.status = absl::ResourceExhaustedError(absl::StrCat(
                             options_.user_requests_max, " requests are waiting already: try again later"))});
  }
}

void Runtime::ReleaseQuarantine(const std::string& entity, std::function<void(absl::Status)> done) {
  if (!quarantine_.Contains(entity)) {
    return done(absl::NotFoundError(absl::StrCat("'", entity, "' is not in quarantine; `llmctl admin quarantine` shows "
                                                 "what is, by kind and id")));
  }
  if (absl::Status open = gate_.Check(); !open.ok()) return done(open);
  core::RequestId request = replies_.Enter([done](const Reply& reply) { done(reply.status); });
  inbox_.PostPardon({.entity = entity, .request = request});
}

void Runtime::Connect(core::WorkerConnected hello, std::shared_ptr<HostLink> connection) {
  if (absl::Status known = quarantine_.Check(core::kNodeEntity, hello.node.id.value()); !known.ok()) {
    return connection->Refuse(std::string(known.message()));
  }
  links_.Add(hello.link, std::move(connection));
  {
    MutexLock lock(mutex_);
    presence_[hello.node.id] = {.last_seen = Now().wall};
  }
  inbox_.Post(Priority::kHost, std::move(hello));
}

void Runtime::Disconnect(int64_t link) {
  links_.Remove(link);
  rendezvous_.DropLink(link);
}

void Runtime::Heartbeat(int64_t link, const NodeId& node, int64_t incarnation, HostReport report,
                        std::function<void()> durable) {
  inbox_.PostRenewal(node, incarnation);
  inbox_.PostAcknowledgement({link, std::move(durable)});
  MutexLock lock(mutex_);
  presence_[node] = {.last_seen = Now().wall, .report = report};
}

void Runtime::Tell(HostFact fact) {
  std::visit([&](auto& f) { inbox_.Post(Priority::kHost, std::move(f)); }, fact);
}

void Runtime::ReportProgress(const GenerationId& generation, const Progress& progress) {
  // A late word about a job that was deleted would be kept for ever.
  const std::shared_ptr<const Snapshot> now = snapshot();
  const JobView* view = now->FindJob(generation.job);
  if (view == nullptr || !view->job->attempt || view->job->attempt->generation != generation.generation) return;
  ranks_.AddStep(generation, progress.step_seconds);
  if (progress_.Report(generation, progress, Now())) hub_.Touch(generation.job);
}

void Runtime::ReportPulses(const std::vector<RankPulse>& pulses) {
  std::map<GenerationId, std::vector<RankPulse>> gangs;
  for (const RankPulse& pulse : pulses) gangs[pulse.generation].push_back(pulse);
  std::shared_ptr<const Snapshot> now = snapshot();
  for (const auto& [generation, own] : gangs) {
    const JobView* view = now->FindJob(generation.job);
    if (!view || !view->job->attempt || view->job->attempt->generation != generation.generation) continue;
    if (view->job->phase == JobPhase::kStarting || view->job->phase == JobPhase::kRunning) {
      JudgeProgress(*view->job, own);
    }
  }
}

void Runtime::JudgeProgress(const llmctl::Job& job, const std::vector<RankPulse>& pulses) {
  HangWatch::JobFacts facts = {.hang_after = job.requirements.hang_after};
  for (size_t rank = 0; rank < job.attempt->ranks.size(); ++rank) {
    if (job.attempt->ranks[rank].phase == RankPhase::kExited) facts.ended.insert(static_cast<int>(rank));
  }
  RankBoard::Findings found = ranks_.Report(pulses, facts, Now());
  for (const StragglerWatch::Change& change : found.stragglers) {
    const std::vector<RankState>& ranks = job.attempt->ranks;
    bool known = change.rank >= 0 && change.rank < static_cast<int>(ranks.size());
    std::string where = known ? absl::StrCat(" (on ", ranks[change.rank].node.value(), ")") : "";
    Log(LogLevel::kWarning, "straggler", {{"job", job.id.value()}, {"rank", change.rank}, {"text", change.text}});
    Tell(core::StragglerSeen{pulses.front().generation, absl::StrCat(change.text, where)});
  }
  if (found.suspicion.has_value()) Inspect(job, *found.suspicion);
}

void Runtime::Inspect(const llmctl::Job& job, const HangWatch::Suspicion& suspicion) {
  std::set<NodeId> hosts;
  std::map<int, NodeId> nodes;
  for (size_t rank = 0; rank < job.attempt->ranks.size(); ++rank) {
    hosts.insert(job.attempt->ranks[rank].node);
    nodes[static_cast<int>(rank)] = job.attempt->ranks[rank].node;
  }
  Log(LogLevel::kWarning, "hang-suspected", {{"job", job.id.value()}, {"text", suspicion.text}});
  inspector_.Inspect({.generation = suspicion.generation, .reason = suspicion.text}, hosts, Now(),
                     [this, suspicion, nodes](std::vector<diagnosis::RankView> views) {
                       for (diagnosis::RankView& view : views) {
                         auto node = nodes.find(view.rank);
                         if (node != nodes.end()) view.node = node->second.value();
                       }
                       auto verdict = ConfirmHang(suspicion, views, static_cast<int>(nodes.size()));
                       Log(LogLevel::kWarning, "hang-inspected",
                           {{"job", suspicion.generation.job.value()},
                            {"verdict", verdict.has_value() ? verdict->text : "no hang"}});
                       if (!verdict.has_value()) return ranks_.DismissSuspicion(suspicion.generation, Now());
                       metrics_.CountHang();
                       Tell(core::JobHung{suspicion.generation, verdict->text, verdict->suspects});
                     });
}

void Runtime::DeliverInspection(const NodeId& node, int64_t request_id, std::vector<diagnosis::RankView> views) {
  inspector_.Deliver(node, request_id, std::move(views));
}

void Runtime::Rendezvous(const GenerationId& generation, RendezvousStore::Asker asker,
                         const StoreOperation& operation, RendezvousStore::Answer answer) {
  std::shared_ptr<const Snapshot> now = snapshot();
  const JobView* view = now->FindJob(generation.job);
  if (!view || !view->job->attempt || view->job->attempt->generation != generation.generation ||
      !HasLiveGang(view->job->phase)) {
    return answer({.error = absl::StrCat("generation ", generation.generation, " of job ", generation.job.value(),
                                         " is over")});
  }
  rendezvous_.Do(generation, asker, operation, std::move(answer));
}

HostPresence Runtime::Presence(const NodeId& node) const {
  MutexLock lock(mutex_);
  auto it = presence_.find(node);
  return it == presence_.end() ? HostPresence{} : it->second;
}

std::string Runtime::RenderMetrics() const {
  auto seen = snapshot();
  return metrics_.Render({.snapshot = *seen,
                          .progress = progress_,
                          .ranks = ranks_,
                          .quarantined = quarantine_.List().size(),
                          .takes_changes = gate_.Check().ok()},
                         Now().wall);
}

}  // namespace llmctl::runtime
