#include "coordinator/runtime/runtime.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/step.h"
#include "coordinator/runtime/core_loop.h"
#include "coordinator/runtime/step_output.h"

namespace llmctl::runtime {
namespace {

// A host reads a piece of a file and sends it: anything longer is a host in trouble.
constexpr absl::Duration kLogPatience = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options, store::Store& store) {
  LLM_ASSIGN_OR_RETURN(int64_t term, store.AcquireTerm());
  Quarantine::Records kept_apart;
  LLM_ASSIGN_OR_RETURN(kept_apart.crashes, CountCrash(options.crash_marker, store, term, Now()));
  LLM_ASSIGN_OR_RETURN(store::Records records, store.Load());
  kept_apart.damaged = std::move(records.damaged);
  std::vector<store::DamagedRecord> damaged_before = std::move(records.damaged_before);
  core::State state = StateFromRecords(std::move(records));
  std::vector<store::Change> changes = ApplyQuarantine(kept_apart.crashes, kept_apart.damaged, state, Now());
  if (!changes.empty()) {
    LLM_RETURN_IF_ERROR(store.Commit(term, changes));
    core::RestoreVolatile(state);
  }
  kept_apart.damaged.insert(kept_apart.damaged.end(), damaged_before.begin(), damaged_before.end());
  Log(LogLevel::kInfo, "store-loaded",
      {{"term", term}, {"jobs", state.jobs.size()}, {"nodes", state.nodes.size()},
       {"revision", state.counters.revision}});
  auto runtime = std::unique_ptr<Runtime>(new Runtime(std::move(options), store, term, state, kept_apart));
  runtime->core_thread_ = std::thread([r = runtime.get(), state = std::move(state)]() mutable {
    r->RunCore(std::move(state));
  });
  return runtime;
}

Runtime::Runtime(Options options, store::Store& store, int64_t term, const core::State& state,
                 const Quarantine::Records& kept_apart)
    : options_(std::move(options)),
      store_(store),
      term_(term),
      inbox_(options_.user_requests_max),
      hub_(state, options_.watch_changes_max),
      rendezvous_(options_.rendezvous),
      logs_(links_, kLogPatience),
      quarantine_(kept_apart),
      metrics_({.version = options_.build_id, .term = term}) {}

Runtime::~Runtime() { Stop(); }

void Runtime::RunCore(core::State state) {
  std::optional<Focus> focus;
  if (options_.crash_marker != nullptr) focus.emplace(options_.crash_marker->focus());
  CoreLoop loop({.lease = options_.lease,
                 .start_grace = std::max(options_.start_grace, options_.lease),
                 .focus = focus.has_value() ? &*focus : nullptr,
                 .on_fatal = options_.on_fatal},
                {inbox_, hub_, links_, rendezvous_, progress_, logs_, replies_, gate_, quarantine_, metrics_},
                std::move(state), store_, term_);
  loop.Run();
}

void Runtime::Stop() {
  if (!core_thread_.joinable()) return;
  gate_.Close(absl::UnavailableError("the coordinator is stopping: try again when it is back"));
  inbox_.Stop();
  core_thread_.join();
  hub_.Close();
  links_.CloseAll("the coordinator is stopping");
  replies_.Close(absl::UnavailableError("the coordinator stopped before this was decided: ask again later"));
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

absl::StatusOr<std::vector<JobEventRecord>> Runtime::ReadEvents(const JobId& job, int64_t after, int limit) {
  return store_.ReadEvents(job, after, limit);
}

void Runtime::ReleaseQuarantine(const std::string& entity, std::function<void(absl::Status)> done) {
  absl::string_view id = entity;
  bool is_job = absl::ConsumePrefix(&id, absl::StrCat(core::kJobEntity, " "));
  if (!quarantine_.Contains(entity)) {
    return done(absl::NotFoundError(absl::StrCat("'", entity, "' is not in quarantine; `llmctl admin quarantine` shows "
                                                 "what is, by kind and id")));
  }
  if (is_job) {
    // Its resumption pardons it.
    return Ask(core::JobResumed{.job = JobId(std::string(id))}, [done](const Reply& reply) { done(reply.status); });
  }
  inbox_.PostPardon({.entity = entity, .done = [done] { done(absl::OkStatus()); }});
}

void Runtime::Connect(core::WorkerConnected hello, std::shared_ptr<HostLink> connection) {
  if (absl::Status known = quarantine_.Check(core::kNodeEntity, hello.node.id.value()); !known.ok()) {
    return connection->Refuse(std::string(known.message()));
  }
  links_.Add(hello.link, std::move(connection));
  {
    MutexLock lock(mutex_);
    last_seen_[hello.node.id] = Now().wall;
  }
  inbox_.Post(Priority::kHost, std::move(hello));
}

void Runtime::Disconnect(int64_t link) {
  links_.Remove(link);
  rendezvous_.DropLink(link);
}

void Runtime::Heartbeat(const NodeId& node, int64_t incarnation, std::function<void()> durable) {
  inbox_.PostRenewal(node, incarnation);
  inbox_.PostAcknowledgement(std::move(durable));
  MutexLock lock(mutex_);
  last_seen_[node] = Now().wall;
}

void Runtime::Tell(HostFact fact) {
  std::visit([&](auto& f) { inbox_.Post(Priority::kHost, std::move(f)); }, fact);
}

void Runtime::ReportProgress(const GenerationId& generation, const Progress& progress) {
  if (progress_.Report(generation, progress, Now())) hub_.Touch(generation.job);
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

absl::Time Runtime::LastSeen(const NodeId& node) const {
  MutexLock lock(mutex_);
  auto it = last_seen_.find(node);
  return it == last_seen_.end() ? absl::InfinitePast() : it->second;
}

std::string Runtime::RenderMetrics() const { return metrics_.Render(*snapshot(), progress_, Now().wall); }

}  // namespace llmctl::runtime
