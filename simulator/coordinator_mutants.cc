// What the mutants of mutants.h do to a coordinator. Each stands where the fault would be in the real program; none of
// this is reached without one.
#include <utility>
#include <variant>

#include "coordinator/core/gang.h"
#include "simulator/coordinator.h"

namespace llmctl::simulator {
namespace {

// Some mutants strike now and then, as such faults do.
constexpr double kRecordLoss = 0.02;
constexpr absl::Duration kSecondFree = absl::Seconds(5);

}  // namespace

void Coordinator::SpoilHello(core::WorkerConnected& hello) {
  if (sim_.Is(Mutant::kHideShims)) hello.shims.clear();
  auto known = core_->state.nodes.find(hello.node.id);
  if (known == core_->state.nodes.end()) return;
  if (sim_.Is(Mutant::kRepeatStartToAnother) && hello.node.incarnation > known->second.incarnation) {
    // It passes for the agent that was there before.
    known->second.incarnation = hello.node.incarnation;
    known->second.boot_id = hello.node.boot_id;
  }
  if (!sim_.Is(Mutant::kAdmitOldIncarnation) || known->second.boot_id != hello.node.boot_id) return;
  if (hello.node.incarnation < known->second.incarnation) hello.node.incarnation = known->second.incarnation;
}

void Coordinator::SpoilEvent(core::Event& event) {
  if (auto* submitted = std::get_if<core::JobSubmitted>(&event); submitted && sim_.Is(Mutant::kLoseIdempotency)) {
    submitted->idempotency_key.clear();
  }
  if (auto* offer = std::get_if<core::CheckpointOffered>(&event); offer != nullptr) {
    auto job = core_->state.jobs.find(offer->generation.job);
    if (job == core_->state.jobs.end()) return;
    failures_before_ = job->second.infrastructure_failures;
    if (!sim_.Is(Mutant::kAdoptOldGenerations)) return;
    offer->generation.attempt = job->second.last_attempt;
    offer->generation.generation = job->second.last_generation;
  }
  if (auto* suspended = std::get_if<core::JobSuspended>(&event); suspended && sim_.Is(Mutant::kLeaveTerminal)) {
    auto job = core_->state.jobs.find(suspended->job);
    if (job == core_->state.jobs.end() || !IsTerminal(job->second.phase)) return;
    job->second.phase = JobPhase::kQueued;
    job->second.cancel_requested = false;
    job->second.time_limit_reached = false;
    job->second.end_time = absl::InfinitePast();
  }
}

void Coordinator::SpoilCommands(const core::Event& event, std::vector<core::Command>& commands) {
  if (const auto* offer = std::get_if<core::CheckpointOffered>(&event); offer && sim_.Is(Mutant::kKeepBackoff)) {
    auto job = core_->state.jobs.find(offer->generation.job);
    if (job != core_->state.jobs.end()) job->second.infrastructure_failures = failures_before_;
  }
  if (sim_.Is(Mutant::kFreeReturned)) FreeReturned();
  if (!sim_.Is(Mutant::kStartHalfGang)) return;
  int starts = 0;
  for (const core::Command& command : commands) starts += std::holds_alternative<core::StartRanks>(command);
  if (starts < 2) return;
  for (auto it = commands.end(); it-- != commands.begin();) {
    if (!std::holds_alternative<core::StartRanks>(*it)) continue;
    commands.erase(it);
    return;
  }
}

void Coordinator::SpoilRecords(std::vector<store::Change>& changes) {
  if (sim_.Is(Mutant::kLoseJobRecords) && sim_.dice().Happens(kRecordLoss)) {
    std::erase_if(changes, [](const store::Change& c) { return std::holds_alternative<store::PutJob>(c); });
  }
  bool counters = sim_.Is(Mutant::kForgetCounters);
  bool cancel = sim_.Is(Mutant::kForgetCancel);
  if (!counters && !cancel) return;
  for (store::Change& change : changes) {
    auto* put = std::get_if<store::PutJob>(&change);
    if (put == nullptr) continue;
    auto job = std::make_shared<Job>(*put->job);
    if (cancel) job->cancel_requested = false;
    const Job* stored = disk_.records().Find(job->id);
    if (counters && stored != nullptr) {
      job->last_attempt = stored->last_attempt;
      job->last_generation = stored->last_generation;
    }
    put->job = std::move(job);
  }
}

// The core drops what does not fit any more: here it fits.
void Coordinator::SpoilPlan(const llmctl::Plan& plan) {
  if (!sim_.Is(Mutant::kApplyStalePlan) || plan.revision == core_->state.counters.revision) return;
  for (const GangPlacement& gang : plan.gangs) {
    for (const Slot& slot : gang.slots) core_->state.device_owner.erase({slot.node, slot.device});
    auto job = core_->state.jobs.find(gang.job);
    if (job == core_->state.jobs.end()) continue;
    job->second.phase = JobPhase::kQueued;
    job->second.end_time = absl::InfinitePast();
  }
}

void Coordinator::FreeReturned() {
  for (const auto& [id, job] : core_->state.jobs) {
    if (HasLiveGang(job.phase) || !job.attempt.has_value()) continue;
    // Named again, for clang 14 captures no structured bindings.
    std::erase_if(core_->state.device_owner, [&job = job](const auto& owned) {
      return owned.second == core::CurrentGeneration(job) && !core::MayHaveProcesses(*job.attempt, owned.first.first);
    });
  }
}

void Coordinator::FreeTwice(const core::GangReleased& release) {
  for (const auto& [slot, owner] : core_->state.device_owner) {
    if (slot.first != release.node || owner != release.generation) continue;
    Later(kSecondFree, [this, slot = slot] { core_->state.device_owner.erase(slot); });
  }
}

}  // namespace llmctl::simulator
