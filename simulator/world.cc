#include "simulator/world.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "coordinator/core/gang.h"

namespace llmctl::simulator {
namespace {

// After the faults: deadlines (120 s), back-off (60 s), yields (5 min), and the work that is left.
constexpr absl::Duration kConvergenceBound = absl::Hours(2);
constexpr absl::Duration kRestCheck = absl::Seconds(5);
// When a schedule has had so many, peace may come: what is left of its jobs is many more.
constexpr int64_t kEventsUnderFaults = 120;
// The share of schedules that run on the real store, their records compared after every step.
constexpr double kRealStoreShare = 0.01;
// Quartz is off by some 50 millionths; ten times that is a broken clock.
constexpr double kDriftMost = 0.0005;

}  // namespace

World::World(const RunOptions& options)
    : sim_(options.seed, options.mutant, options.print_trace),
      options_(options),
      host_count_(kNodesLeast + sim_.dice().Pick(3)),
      drift_most_(sim_.dice().Happens(0.5) ? kDriftMost : 0),
      network_(sim_, host_count_ + 1),
      trainers_(sim_, disk_),
      coordinator_disk_(sim_, sim_.dice().Happens(kRealStoreShare)) {
  if (drift_most_ > 0) sim_.Reached(Probe::kClockDrift);
  trainers_.set_is_over([this](const GenerationId& id) {
    const Job* job = coordinator_disk_.records().Find(id.job);
    return job == nullptr || !HasLiveGang(job->phase) || job->last_generation != id.generation;
  });
  BuildHosts();
  BuildCoordinators(coordinator_disk_.real_store());
  ConnectNetwork();
  faults_ = std::make_unique<Faults>(
      sim_, Faults::Victims{network_, coordinator_disk_, trainers_, coordinators_, hosts_, options.clocks_jump});
  script_ = std::make_unique<Script>(sim_, *faults_, *users_,
                                     Script::Options{options.seed, options.left_out, options.intrusions});
}

Clock World::MakeClock() { return Clock(1.0 + drift_most_ * sim_.dice().Between(-1.0, 1.0)); }

void World::BuildHosts() {
  int devices = 0;
  std::vector<NodeId> nodes;
  for (int i = 0; i <= host_count_; ++i) {
    bool namesake = i == host_count_;
    int here = 1 + sim_.dice().Pick(2);
    Host::Machine machine{.index = i,
                          .node = NodeId(absl::StrCat("node-", namesake ? 0 : i)),
                          .devices = here,
                          .clock = MakeClock(),
                          .off = namesake};
    hosts_.push_back(std::make_unique<Host>(sim_, network_, trainers_, disk_, std::move(machine)));
    hosts_.back()->Connect({.coordinator = [this] { return CoordinatorToAsk(); },
                            .on_retired = [this](const GenerationId& id, int rank) { CheckRetired(id, rank); }});
    if (namesake) continue;
    devices += here;
    nodes.push_back(hosts_.back()->node());
  }
  auto ask = [this](core::Event event) {
    int coordinator = CoordinatorToAsk();
    if (coordinator >= 0) coordinators_[coordinator]->Request(std::move(event));
  };
  users_ = std::make_unique<Users>(sim_, Users::Surroundings{ask, std::move(nodes), devices});
}

void World::BuildCoordinators(bool check_always) {
  for (int i = 0; i < 2; ++i) {
    coordinators_.push_back(std::make_unique<Coordinator>(
        sim_, network_, coordinator_disk_, Coordinator::Options{i, MakeClock(), check_always}));
    coordinators_[i]->Connect({.reply = [this](const core::ReplyToUser& reply) { users_->OnReply(reply); },
                               .on_event = [this](const core::Event& event) { script_->OnEvent(event); },
                               .other_up = [this, i] { return coordinators_[1 - i]->up(); }});
  }
}

void World::ConnectNetwork() {
  network_.Connect({
      .at_coordinator = [this](int64_t link, const Network::Ends& ends, const agent::AgentMessage& m) {
        coordinators_[ends.coordinator]->OnMessage(link, ends, m);
      },
      .at_agent = [this](int64_t link, const Network::Ends& ends, const agent::Event& m) {
        hosts_[ends.host]->OnMessage(link, ends, m);
      },
      .closed_at_coordinator = [this](int64_t link, const Network::Ends& ends) {
        coordinators_[ends.coordinator]->OnLinkClosed(link);
      },
      .closed_at_agent = [this](int64_t link, const Network::Ends& ends) {
        hosts_[ends.host]->OnLinkClosed(link, ends);
      },
  });
}

Coordinator* World::Newest() {
  Coordinator* newest = nullptr;
  for (const auto& coordinator : coordinators_) {
    if (!coordinator->up()) continue;
    if (newest == nullptr || coordinator->term() > newest->term()) newest = coordinator.get();
  }
  return newest;
}

int World::CoordinatorToAsk() {
  int newest = -1;
  for (int i = 0; i < 2; ++i) {
    if (!coordinators_[i]->up()) continue;
    if (newest < 0) {
      newest = i;
      continue;
    }
    bool later = coordinators_[i]->term() > coordinators_[newest]->term();
    // Both are up.
    if (later != sim_.dice().Happens(0.2)) newest = i;
  }
  return newest;
}

int64_t World::Events() const {
  int64_t events = 0;
  for (const auto& coordinator : coordinators_) events += coordinator->events();
  return events;
}

bool World::SeenEnough() const {
  return Events() >= kEventsUnderFaults && users_->submitted() >= kJobsLeast && sim_.FaultKinds() >= kFaultKindsLeast;
}

Outcome World::Run() {
  coordinators_[0]->Start();
  for (auto& host : hosts_) host->StartAgent();
  script_->Begin([this] { return SeenEnough(); });
  while (!script_->over() && sim_.RunNext()) CheckPromises();
  sim_.Trace({'r'}, [] { return std::string("all is repaired"); });
  if (!sim_.failed()) {
    faults_->Heal();
    users_->Calm();
  }
  WaitForRest(sim_.now() + kConvergenceBound);
  while (!sim_.failed() && Events() < kEventsLeast) {
    users_->SubmitInPeace();
    WaitForRest(sim_.now() + kConvergenceBound);
  }
  CheckPromises();
  return Summary();
}

void World::RunUntil(absl::Duration end) {
  bool reached = false;
  sim_.After(end - sim_.now(), [&reached] { reached = true; });
  while (!reached && sim_.RunNext()) CheckPromises();
}

void World::WaitForRest(absl::Duration bound) {
  std::string unrest = "it never began";
  while (!sim_.failed() && sim_.now() < bound) {
    RunUntil(sim_.now() + kRestCheck);
    if (sim_.failed()) return;
    unrest = FindUnrest();
    if (unrest.empty()) return;
  }
  if (!sim_.failed()) sim_.Violation(absl::StrCat("no rest after the faults: ", unrest));
}

Outcome World::Summary() {
  Outcome outcome{.violation = sim_.violation(),
                  .trace_hash = sim_.trace_hash(),
                  .actions = sim_.actions(),
                  .simulated = sim_.now(),
                  .probes = sim_.probes(),
                  .nodes = host_count_,
                  .jobs = users_->submitted(),
                  .fault_kinds = sim_.FaultKinds(),
                  .intrusions = script_->count()};
  for (const auto& coordinator : coordinators_) {
    outcome.events.resize(coordinator->events_by_kind().size());
    for (size_t i = 0; i < outcome.events.size(); ++i) outcome.events[i] += coordinator->events_by_kind()[i];
  }
  return outcome;
}

// An agent forgets how a rank of a live gang ended only when that is durable.
void World::CheckRetired(const GenerationId& id, int rank) {
  const Job* job = coordinator_disk_.records().Find(id.job);
  if (job == nullptr || !HasLiveGang(job->phase)) return;
  const Attempt& attempt = *job->attempt;
  if (attempt.generation != id.generation || attempt.ranks[rank].exit.has_value()) return;
  // A host that counts as released without a word (it came back empty, or another has its name) is not asked.
  if (!core::MayHaveProcesses(attempt, attempt.ranks[rank].node)) return;
  sim_.Violation(
      absl::StrCat("how rank ", rank, " of ", id.job.value(), " ended was forgotten before it was durable"));
}

// Only when the store has changed, and only what has.
void World::CheckPromises() {
  if (coordinator_disk_.records().revision() == checked_revision_) return;
  checked_revision_ = coordinator_disk_.records().revision();
  std::set<JobId> changed = coordinator_disk_.records().TakeChanged();
  std::string broken = users_->BrokenPromise(coordinator_disk_.records(), changed);
  if (!broken.empty()) sim_.Violation(broken);
  for (const JobId& id : changed) {
    if (const Job* job = coordinator_disk_.records().Find(id)) CheckJob(id, *job);
  }
}

void World::CheckJob(const JobId& id, const Job& job) {
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    GenerationId writer{id, checkpoint.attempt, checkpoint.generation};
    if (checkpoint.path == CheckpointPath(writer, checkpoint.step)) continue;
    sim_.Violation(absl::StrCat("generation ", checkpoint.generation, " of ", id.value(), " has committed ",
                                checkpoint.path, ", which another wrote"));
  }
  bool misconfigured = job.failure.failure_class == FailureClass::kUser && job.failure.outlook == Outlook::kNever;
  if (misconfigured && job.phase == JobPhase::kFailed &&
      job.requirements.checkpoint_directory == kSharedDirectory) {
    sim_.Violation(absl::StrCat("job ", id.value(), " was given up as misconfigured: ", job.reason));
  }
  if (job.phase == JobPhase::kFailed) sim_.Reached(Probe::kJobFailed);
  if (job.phase != JobPhase::kSucceeded) return;
  sim_.Reached(Probe::kJobSucceeded);
  if (job.checkpoints.empty() || job.checkpoints.back().step != DecodeWorkload(job.spec).steps) {
    sim_.Violation(absl::StrCat("job ", id.value(), " succeeded without its last checkpoint"));
  }
}

std::string World::FindRestlessHost(const core::State& state) const {
  for (const auto& host : hosts_) {
    if (!host->has_power()) continue;
    const agent::State* agent = host->agent();
    if (agent == nullptr) return absl::StrCat(host->node().value(), " has no agent");
    if (!state.connected.contains(host->node())) return absl::StrCat(host->node().value(), " has no link");
    if (!agent->gangs.empty()) return absl::StrCat(host->node().value(), " still has a gang");
    if (!agent->outbox.empty()) return absl::StrCat(host->node().value(), " still offers a checkpoint");
  }
  return "";
}

std::string World::FindRestlessJob(const core::State& state) const {
  for (const auto& [id, job] : state.jobs) {
    if (IsTerminal(job.phase) || job.phase == JobPhase::kSuspended) continue;
    if (job.phase == JobPhase::kQueued && users_->IsTooLarge(id) && state.waiting_reason.contains(id)) continue;
    auto waits = state.waiting_reason.find(id);
    return absl::StrCat("job ", id.value(), " is ", JobPhaseName(job.phase), " (",
                        waits == state.waiting_reason.end() ? job.reason : waits->second, ")");
  }
  return "";
}

std::string World::FindUnrest() {
  if (users_->Waiting()) return "a request was never answered";
  Coordinator* coordinator = Newest();
  if (coordinator == nullptr) return "there is no coordinator";
  const core::State& state = coordinator->state();
  if (std::string what = FindRestlessHost(state); !what.empty()) return what;
  if (std::string what = FindRestlessJob(state); !what.empty()) return what;
  if (!state.device_owner.empty()) return "a device is still owned";
  if (!trainers_.Alive().empty()) return "a trainer still runs";
  if (coordinator->rendezvous_bytes() > 0) return "rendezvous keys outlive their generation";
  return coordinator->settled() ? "" : "a commit is under way";
}

}  // namespace llmctl::simulator
