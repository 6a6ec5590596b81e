#include "simulator/coordinator.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "coordinator/runtime/step_output.h"
#include "simulator/describe.h"
#include "simulator/translate.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kGrace = absl::Seconds(60);
constexpr absl::Duration kCommitRetry = absl::Milliseconds(500);
constexpr absl::Duration kStartRetry = absl::Seconds(2);
// A comparison of the whole state costs as much as many steps.
constexpr double kStoreCheckShare = 0.02;

}  // namespace

void Coordinator::CountStanding(const NodeStanding& standing) {
  if (standing.service == NodeService::kDrained) sim_.Reached(Probe::kNodeDrained);
  if (standing.trust == NodeTrust::kQuarantined) sim_.Reached(Probe::kNodeQuarantined);
  if (standing.trust == NodeTrust::kBurnIn) sim_.Reached(Probe::kNodeInBurnIn);
  if (standing.trust == NodeTrust::kParole) sim_.Reached(Probe::kNodeOnParole);
}

Coordinator::Process::Process(CoordinatorDisk::Opened opened)
    : term(opened.term), state(std::move(opened.state)), leases(kLease), rendezvous({}) {
  for (const auto& [id, job] : state.jobs) {
    published[id] = std::make_shared<const Job>(job);
    if (job.attempt.has_value() && job.attempt->ranks_requested) requested[id] = job.last_generation;
  }
}

Coordinator::Coordinator(Simulation& sim, Network& network, CoordinatorDisk& disk, Options options)
    : sim_(sim),
      network_(network),
      disk_(disk),
      index_(options.index),
      check_always_(options.check_always),
      clock_(options.clock),
      events_by_kind_(std::variant_size_v<core::Event>) {}

void Coordinator::Start() {
  if (up_ || retired_) return;
  absl::StatusOr<CoordinatorDisk::Opened> opened = disk_.Open();
  if (!opened.ok()) {
    sim_.Trace({'n', index_}, [&] {
      return absl::StrCat("coordinator ", index_, " cannot start: ", opened.status().message());
    });
    if (!surroundings_.other_up()) disk_.Abandon();
    sim_.After(kStartRetry, [this] { Start(); });
    return;
  }
  if (surroundings_.other_up()) sim_.Reached(Probe::kSecondCoordinator);
  up_ = true;
  ++life_;
  crash_after_commit_.reset();
  retry_at_ = absl::ZeroDuration();
  core_ = std::make_unique<Process>(*std::move(opened));
  sim_.Trace({'c', index_, core_->term, core_->state.counters.revision}, [&] {
    return absl::StrCat("coordinator ", index_, " starts with term ", core_->term, " at revision ",
                        core_->state.counters.revision);
  });
  Post(core::CoordinatorStarted{kGrace});
  WatchLeases();
}

void Coordinator::Retire() {
  retired_ = true;
  Crash();
}

void Coordinator::Crash() {
  if (!up_) return;
  sim_.Trace({'k', index_}, [&] { return absl::StrCat("coordinator ", index_, " crashes"); });
  if (!core_->pipeline.empty()) sim_.Reached(Probe::kCrashLosesSteps);
  CheckStore("at a crash");
  if (disk_.term() == core_->term && core_->in_flight != nullptr) disk_.Rehearse(*core_->in_flight);
  up_ = standing_still_ = leases_due_ = false;
  ++life_;
  stalled_.clear();
  stalled_renewals_.clear();
  network_.CutCoordinator(index_);
  if (!surroundings_.other_up()) disk_.Abandon();
}

// What is durable, with what is on its way there, is the state: a restart from there on would lose nothing.
void Coordinator::CheckStore(const char* when) {
  if (disk_.term() != core_->term) return;
  RecordStore then = disk_.records();
  // What is in flight may be durable already: applied twice is applied once.
  core_->pipeline.VisitWaiting([&](const runtime::StepOutput& step) {
    for (const store::Change& change : step.changes) {
      if (!std::holds_alternative<store::AppendEvent>(change)) (void)then.Apply(change);
    }
  });
  if (std::string what = then.Difference(core_->state); !what.empty()) {
    sim_.Violation(absl::StrCat("the store is not the state ", when, ": ", what, " differs"));
  }
}

void Coordinator::Pause(absl::Duration duration) {
  if (standing_still_ || !up_) return;
  sim_.Trace({'h', index_}, [&] {
    return absl::StrCat("coordinator ", index_, " stands still for ", absl::FormatDuration(duration));
  });
  if (duration > kLease) sim_.Reached(Probe::kCoordinatorPauseBeyondLease);
  standing_still_ = true;
  sim_.After(duration, [this, life = life_, duration] {
    if (life == life_) Wake(duration);
  });
}

void Coordinator::Wake(absl::Duration away) {
  standing_still_ = false;
  int64_t life = life_;
  // As the runtime's loop does: a stall of ours costs no host its lease, renewals come first, expiry last.
  if (away > kLease / 2) core_->leases.Extend(away);
  for (const Node& node : std::exchange(stalled_renewals_, {})) Renew(node);
  // In the order in which it came.
  std::vector<Simulation::Action> stalled = std::exchange(stalled_, {});
  for (Simulation::Action& action : stalled) {
    if (life == life_) action();
  }
  if (life != life_ || !std::exchange(leases_due_, false)) return;
  ExpireLeases();
  if (life == life_) WatchLeases();
}

void Coordinator::OnMessage(int64_t link, const Network::Ends& ends, const agent::AgentMessage& message) {
  if (!up_) return;
  if (!standing_still_) return Take(link, ends, message);
  if (std::holds_alternative<agent::Heartbeat>(message)) stalled_renewals_.push_back(ends.node);
  stalled_.push_back([this, link, ends, message] { Take(link, ends, message); });
}

void Coordinator::Take(int64_t link, const Network::Ends& ends, const agent::AgentMessage& message) {
  const Node& node = ends.node;
  if (const auto* hello = std::get_if<agent::Hello>(&message)) {
    core::WorkerConnected event = ToConnected(node, link, *hello);
    core_->greetings[link] = {ends.host, ends.agent, node.boot_id};
    SpoilHello(event);
    core_->confirmed[link] = std::make_shared<int64_t>(0);
    Post(event);
  } else if (const auto* heartbeat = std::get_if<agent::Heartbeat>(&message)) {
    OnHeartbeat(link, node, heartbeat->sequence);
  } else if (const auto* call = std::get_if<agent::StoreCall>(&message)) {
    OnStoreCall(link, *call);
  } else if (std::optional<core::Event> event = ToEvent(node.id, message); event.has_value()) {
    SpoilEvent(*event);
    Post(*event);
  }
}

void Coordinator::OnHeartbeat(int64_t link, const Node& node, int64_t sequence) {
  if (!sim_.Is(Mutant::kLeaseFromSending)) Renew(node);
  auto confirmed = core_->confirmed.find(link);
  if (confirmed == core_->confirmed.end()) return;
  // Answered at once, so that the host knows its link to be alive, but with what is durable by now.
  int64_t durable = sim_.Is(Mutant::kConfirmTooEarly) ? sequence : *confirmed->second;
  network_.ToAgent(link, agent::HeartbeatAnswered{durable});
  std::function<void()> acknowledge = [sequence, number = confirmed->second] { *number = sequence; };
  if (sim_.Is(Mutant::kLeaseFromSending)) {
    acknowledge = [this, node, acknowledge] {
      acknowledge();
      core_->leases.Renew(node.id, node.incarnation, Now());
    };
  }
  core_->pipeline.Acknowledge(link, std::move(acknowledge), core_->state.counters.revision);
  ReleaseDurable();
}

void Coordinator::OnStoreCall(int64_t link, const agent::StoreCall& call) {
  GenerationId generation = call.generation;
  int64_t request = call.request.request_id;
  auto answer = [this, link, generation, request](const runtime::StoreAnswer& a) {
    if (request != 0) network_.ToAgent(link, ToOrder(generation, request, a));
  };
  auto found = core_->published.find(generation.job);
  const Job* job = found == core_->published.end() ? nullptr : found->second.get();
  if (job == nullptr || !job->attempt || job->attempt->generation != generation.generation ||
      !HasLiveGang(job->phase)) {
    return answer({.error = absl::StrCat("generation ", generation.generation, " is over")});
  }
  core_->rendezvous.Do(generation, {.link = link, .request = request}, ToOperation(call.request), answer);
}

void Coordinator::OnLinkClosed(int64_t link) {
  if (!up_) return;
  // The lease goes on: the agent may be back before it runs out.
  sim_.Trace({'d', link}, [&] { return absl::StrCat("coordinator ", index_, " has lost link ", link); });
  WhenAwake([this, link] {
    core_->rendezvous.DropLink(link);
    core_->confirmed.erase(link);
  });
}

void Coordinator::Request(core::Event event) {
  if (!up_) return;
  SpoilEvent(event);
  Later(sim_.dice().Between(absl::Milliseconds(1), absl::Milliseconds(10)),
        [this, event = std::move(event)] { Post(event); });
}

void Coordinator::Notice(core::Event event) {
  if (!up_) return;
  WhenAwake([this, event = std::move(event)] { Post(event); });
}

// Of the jobs that it is to begin.
std::vector<int64_t> Coordinator::GenerationsOf(const llmctl::Plan& plan) const {
  std::vector<int64_t> generations;
  for (const GangPlacement& gang : plan.gangs) {
    auto job = core_->state.jobs.find(gang.job);
    generations.push_back(job == core_->state.jobs.end() ? 0 : job->second.last_generation);
  }
  return generations;
}

void Coordinator::Post(const core::Event& event) {
  ++events_;
  ++events_by_kind_[event.index()];
  if (sim_.tracing()) sim_.Trace({}, [&] { return absl::StrCat("event ", Describe(event)); });
  if (const auto* released = std::get_if<core::GangReleased>(&event); released && sim_.Is(Mutant::kFreeTwice)) {
    FreeTwice(*released);
  }
  const auto* plan = std::get_if<core::PlanReady>(&event);
  std::vector<int64_t> generations;
  if (plan != nullptr) generations = GenerationsOf(plan->plan);
  std::vector<core::Command> commands = core::Step(core_->state, event, Now());
  if (plan != nullptr) CheckPlacement(*plan, generations);
  sim_.Trace({static_cast<int64_t>(event.index()), index_, core_->state.counters.revision,
              static_cast<int64_t>(commands.size())},
             [&] { return absl::StrCat("  revision ", core_->state.counters.revision); });
  SpoilCommands(event, commands);
  for (const std::string& broken : core::FindViolations(core_->state)) sim_.Violation(broken);
  if (!sim_.Is(Mutant::kLeaseFromSending)) ReserveLeases(commands);
  runtime::StepOutput output = runtime::SortCommands(core_->state, std::move(commands));
  SpoilRecords(output.changes);
  for (const core::Command& command : output.inward) CarryOut(command);
  output.inward.clear();
  if (sim_.Is(Mutant::kSendBeforePersist)) {
    for (const core::Command& command : output.outbox) CarryOut(command);
    output.outbox.clear();
  }
  core_->pipeline.Add(std::move(output));
  if (check_always_) CheckStore("after a step");
  int64_t life = life_;
  ReleaseDurable();
  BeginCommit();
  if (life == life_) surroundings_.on_event(event);
}

// Reserved with the step: the lease that it takes the place of might run out before it is durable.
void Coordinator::ReserveLeases(const std::vector<core::Command>& commands) {
  for (const core::Command& command : commands) {
    const auto* admit = std::get_if<core::AdmitWorker>(&command);
    if (admit == nullptr) continue;
    if (sim_.Is(Mutant::kLeaseRunsInCommit)) {
      core_->leases.Grant(admit->node, admit->incarnation, Now());
    } else {
      core_->leases.Reserve(admit->node, admit->incarnation);
    }
  }
}

void Coordinator::BeginCommit() {
  if (sim_.now() < retry_at_) return;
  std::shared_ptr<const std::vector<store::Change>> batch = core_->pipeline.Begin();
  if (batch == nullptr) return;
  core_->in_flight = batch;
  Later(disk_.CommitTime(), [this, batch] { EndCommit(*batch); });
}

void Coordinator::EndCommit(const std::vector<store::Change>& batch) {
  absl::Status status = disk_.Commit(core_->term, batch);
  if (absl::IsFailedPrecondition(status)) {
    sim_.Reached(Probe::kCommitRefusedByTerm);
    return Crash();
  }
  if (disk_.dead()) {
    sim_.Reached(Probe::kDiskDiesInCommit);
    sim_.After(sim_.dice().Between(absl::Milliseconds(100), absl::Seconds(20)), [this] { Start(); });
    return Crash();
  }
  if (!status.ok()) {
    sim_.Reached(Probe::kCommitFailed);
    core_->pipeline.Failed();
    retry_at_ = sim_.now() + kCommitRetry;
    sim_.After(kCommitRetry, [this, life = life_] {
      if (life == life_) WhenAwake([this] { BeginCommit(); });
    });
    return;
  }
  core_->in_flight.reset();
  if (crash_after_commit_.has_value()) {
    sim_.Reached(Probe::kCoordinatorCrashAfterCommit);
    sim_.After(*crash_after_commit_, [this] { Start(); });
    return Crash();
  }
  core_->pipeline.Succeeded();
  ReleaseDurable();
  if (sim_.dice().Happens(kStoreCheckShare)) CheckStore("after a commit");
  BeginCommit();
}

void Coordinator::ReleaseDurable() {
  for (const runtime::StepOutput& step : core_->pipeline.TakeDurable()) {
    for (const store::Change& change : step.changes) {
      if (const auto* put = std::get_if<store::PutJob>(&change)) core_->published[put->job->id] = put->job;
      if (const auto* erase = std::get_if<store::EraseJob>(&change)) core_->published.erase(erase->job);
      if (const auto* put = std::get_if<store::PutNode>(&change)) CountStanding(put->node->standing);
    }
    CheckGangsAreWhole(step);
    for (const core::Command& command : step.outbox) CarryOut(command);
    for (const auto& [link, give] : step.acknowledge) give();
  }
}

}  // namespace llmctl::simulator
