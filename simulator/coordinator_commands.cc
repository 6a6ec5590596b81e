// What leaves a coordinator, what it plans, and whose lease runs out.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "coordinator/core/gang.h"
#include "coordinator/core/snapshot_for_placement.h"
#include "coordinator/placement/placement.h"
#include "simulator/coordinator.h"
#include "simulator/translate.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(4);
constexpr absl::Duration kLease = absl::Seconds(10);

}  // namespace

// Whatever carries a generation may leave only when that generation is durable.
void Coordinator::CheckFenced(const GenerationId& generation) {
  const Job* job = disk_.records().Find(generation.job);
  if (job == nullptr || generation.generation <= job->last_generation) return;
  sim_.Violation(absl::StrCat("generation ", generation.generation, " of ", generation.job.value(), " was sent while ",
                              job->last_generation, " was durable"));
}

// What a plan begins is not on hosts that operators have closed.
void Coordinator::CheckPlacement(const core::PlanReady& plan, const std::vector<int64_t>& before) {
  for (size_t i = 0; i < plan.plan.gangs.size(); ++i) {
    const GangPlacement& gang = plan.plan.gangs[i];
    auto job = core_->state.jobs.find(gang.job);
    if (job == core_->state.jobs.end() || job->second.last_generation == before[i]) continue;
    for (const RankState& rank : job->second.attempt->ranks) {
      if (TakesRanks(core_->state.nodes.at(rank.node))) continue;
      sim_.Violation(absl::StrCat("job ", gang.job.value(), " was placed on ", rank.node.value(), ", which is closed"));
    }
  }
}

// The step that decides to start a gang tells all its hosts that have a link.
void Coordinator::CheckGangsAreWhole(const runtime::StepOutput& step) {
  for (const store::Change& change : step.changes) {
    const auto* put = std::get_if<store::PutJob>(&change);
    if (put == nullptr || !put->job->attempt.has_value() || !put->job->attempt->ranks_requested) continue;
    const Attempt& attempt = *put->job->attempt;
    // Later steps of the generation repeat a start for single hosts.
    if (std::exchange(core_->requested[put->job->id], attempt.generation) == attempt.generation) continue;
    std::set<NodeId> told;
    for (const core::Command& command : step.outbox) {
      const auto* start = std::get_if<core::StartRanks>(&command);
      if (start != nullptr && start->generation.job == put->job->id) told.insert(start->node);
    }
    for (const NodeId& host : core::HostsOf(attempt)) {
      if (told.contains(host) || !core_->state.connected.contains(host)) continue;
      sim_.Violation(absl::StrCat("generation ", attempt.generation, " of ", put->job->id.value(),
                                  " was started, but not on ", host.value()));
    }
  }
}

void Coordinator::SendOrder(const NodeId& node, agent::Event order) {
  auto link = core_->links.find(node);
  if (link != core_->links.end()) network_.ToAgent(link->second, std::move(order));
}

void Coordinator::Admit(const core::AdmitWorker& command) {
  if (!sim_.Is(Mutant::kLeaseRunsInCommit)) core_->leases.Grant(command.node, command.incarnation, Now());
  core_->heard[command.node] = Now().monotonic;
  const Greeting& greeting = core_->greetings.at(command.link);
  Greeting& newest = core_->newest_agent[greeting.host];
  // A late Hello of an earlier boot is known as such only while another agent has the name.
  if (greeting.agent < newest.agent && greeting.boot_id == newest.boot_id) {
    sim_.Violation(absl::StrCat("an agent of ", command.node.value(), " took the place of the one that replaced it"));
  }
  if (greeting.agent > newest.agent) newest = greeting;
  auto [link, fresh] = core_->links.emplace(command.node, command.link);
  if (!fresh && link->second != command.link) network_.CloseAtCoordinator(link->second);
  link->second = command.link;
  network_.ToAgent(command.link, agent::CoordinatorWelcomed{kHeartbeat});
}

void Coordinator::CarryOut(const core::Command& command) {
  std::visit(Overloaded{
                 [&](const core::ProbeHost& c) {
                   CheckFenced(c.generation);
                   SendOrder(c.node, ToOrder(c));
                 },
                 [&](const core::RunPreflight& c) { SendOrder(c.node, ToOrder(c)); },
                 [&](const core::StartRanks& c) {
                   CheckFenced(c.generation);
                   SendOrder(c.node, ToOrder(c));
                 },
                 [&](const core::StopRanks& c) {
                   SendOrder(c.node, ToOrder(c));
                   if (!sim_.Is(Mutant::kReleaseTooEarly)) return;
                   Later(absl::ZeroDuration(), [this, c] { Post(core::GangReleased{c.node, c.generation}); });
                 },
                 [&](const core::AnswerCheckpoint& c) { SendOrder(c.node, ToOrder(c)); },
                 [&](const core::AdmitWorker& c) { Admit(c); },
                 [&](const core::RefuseWorker& c) {
                   sim_.Reached(Probe::kWorkerRefused);
                   network_.CloseAtCoordinator(c.link);
                 },
                 [&](const core::DropRendezvous& c) {
                   if (!sim_.Is(Mutant::kKeepRendezvous)) core_->rendezvous.Drop(c.generation);
                 },
                 [&](const core::ReplyToUser& c) { surroundings_.reply(c); },
                 [&](const core::ArmTimer& c) {
                   Later(c.delay, [this, timer = c.timer] { Post(core::TimerFired{timer}); });
                 },
                 [&](const core::RequestPlan&) { Plan(); },
                 // Records went to the store.
                 [](const auto&) {},
             },
             command);
}

void Coordinator::Plan() {
  if (core_->planning) {
    core_->plan_again = true;
    return;
  }
  core_->planning = true;
  // A slow one is the more stale.
  absl::Duration slowest = sim_.Is(Mutant::kApplyStalePlan) ? absl::Seconds(2) : absl::Milliseconds(100);
  // The snapshot is taken when the step is over.
  Later(absl::ZeroDuration(), [this, slowest] {
    core::PlanReady ready{placement::MakePlan(core::MakeSnapshot(core_->state))};
    Later(sim_.dice().Between(absl::Milliseconds(1), slowest), [this, ready = std::move(ready)] {
      core_->planning = false;
      if (ready.plan.revision != core_->state.counters.revision) sim_.Reached(Probe::kPlanStale);
      SpoilPlan(ready.plan);
      int64_t life = life_;
      Post(ready);
      if (life == life_ && std::exchange(core_->plan_again, false)) Plan();
    });
  });
}

void Coordinator::Renew(const Node& node) {
  const Instant now = Now();
  core_->leases.Renew(node.id, node.incarnation, now);
  if (core_->leases.Holds(node.id, node.incarnation)) core_->heard[node.id] = now.monotonic;
}

// Whatever lease begins meanwhile ends later.
void Coordinator::WatchLeases() {
  absl::Duration wait = std::min(kLease, core_->leases.next_deadline() - Now().monotonic);
  sim_.After(clock_.TrueLength(std::max(wait, absl::Milliseconds(1))), [this, life = life_] {
    if (life != life_) return;
    if (standing_still_) {
      leases_due_ = true;
      return;
    }
    ExpireLeases();
    if (life == life_) WatchLeases();
  });
}

void Coordinator::ExpireLeases() {
  int64_t life = life_;
  for (const runtime::LeaseTable::Expired& lost : core_->leases.TakeExpired(Now())) {
    sim_.Reached(Probe::kLeaseExpired);
    if (Now().monotonic - core_->heard[lost.node] < kLease) {
      sim_.Violation(absl::StrCat(lost.node.value(), " was lost though it was heard within its lease"));
    }
    auto link = core_->links.find(lost.node);
    if (link != core_->links.end()) network_.CloseAtCoordinator(link->second);
    core_->links.erase(lost.node);
    Post(core::WorkerLost{lost.node, lost.incarnation, "no heartbeat for 10s"});
    if (life != life_) return;
  }
}

}  // namespace llmctl::simulator
