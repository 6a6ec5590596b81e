#include "simulator/coordinator.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "coordinator/core/snapshot_for_placement.h"
#include "coordinator/placement/placement.h"
#include "coordinator/runtime/step_output.h"
#include "simulator/describe.h"
#include "simulator/translate.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(2);
constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kGrace = absl::Seconds(60);
constexpr absl::Duration kCommitRetry = absl::Milliseconds(500);
// A comparison of the whole state costs as much as many steps; a share of them shows a forgotten Save all the same.
constexpr double kStoreCheckShare = 0.1;

}  // namespace

Coordinator::Coordinator(Simulation& sim, Network& network, std::function<Node(int)> describe_host)
    : sim_(sim),
      network_(network),
      describe_host_(std::move(describe_host)),
      commit_time_(sim.Chance(0.3) ? absl::Milliseconds(200) : absl::Milliseconds(8)) {}

void Coordinator::Start() {
  if (up_) return;
  up_ = true;
  ++life_;
  crash_after_commit_.reset();
  retry_at_ = absl::ZeroDuration();
  core_ = std::make_unique<Process>(Process{.state = store_.Load(), .leases = runtime::LeaseTable(kLease)});
  sim_.Trace(absl::StrCat("coordinator starts at revision ", core_->state.counters.revision));
  if (!store_.Holds(core_->state)) sim_.Violation("the loaded state is not what is stored");
  Post(core::CoordinatorStarted{kGrace});
  WatchLeases();
}

void Coordinator::Crash() {
  if (!up_) return;
  sim_.Trace("coordinator crashes");
  if (!core_->pipeline.empty()) sim_.Reached("coordinator crash loses steps");
  up_ = standing_still_ = false;
  ++life_;
  stalled_.clear();
  network_.CutAll();
}

void Coordinator::Pause(absl::Duration duration) {
  if (standing_still_) return;
  sim_.Trace(absl::StrCat("coordinator stands still for ", absl::FormatDuration(duration)));
  standing_still_ = true;
  core_->leases.Extend(duration);
  sim_.After(duration, [this, life = life_] {
    if (life != life_) return;
    standing_still_ = false;
    // What has queued up meanwhile, in the order in which it came.
    std::vector<std::function<void()>> stalled = std::move(stalled_);
    stalled_.clear();
    for (const std::function<void()>& action : stalled) {
      if (life == life_) action();
    }
  });
}

void Coordinator::WhenAwake(std::function<void()> action) {
  if (standing_still_) {
    stalled_.push_back(std::move(action));
  } else {
    action();
  }
}

void Coordinator::Later(absl::Duration delay, std::function<void()> action) {
  sim_.After(delay, [this, life = life_, action = std::move(action)] {
    if (life == life_) WhenAwake(action);
  });
}

void Coordinator::OnMessage(int64_t link, int host, const agent::AgentMessage& message) {
  if (up_) WhenAwake([this, link, host, message] { Take(link, host, message); });
}

void Coordinator::Take(int64_t link, int host, const agent::AgentMessage& message) {
  Node node = describe_host_(host);
  if (const auto* hello = std::get_if<agent::Hello>(&message)) {
    core::WorkerConnected event = ToConnected(node, link, *hello);
    if (sim_.mutant() == Mutant::kHideShims) event.shims.clear();
    Post(event);
  } else if (const auto* heartbeat = std::get_if<agent::Heartbeat>(&message)) {
    core_->leases.Renew(node.id, node.incarnation, sim_.now());
    OnHeartbeat(link, heartbeat->sequence);
  } else if (std::optional<core::Event> event = ToEvent(node.id, message); event.has_value()) {
    if (auto* offer = std::get_if<core::CheckpointOffered>(&*event)) OnOffer(*offer);
    Post(*event);
  }
}

void Coordinator::OnOffer(core::CheckpointOffered& offer) {
  auto job = core_->state.jobs.find(offer.generation.job);
  if (sim_.mutant() != Mutant::kAdoptOldGenerations || job == core_->state.jobs.end()) return;
  offer.generation.attempt = job->second.last_attempt;
  offer.generation.generation = job->second.last_generation;
}

void Coordinator::OnHeartbeat(int64_t link, int64_t sequence) {
  auto answer = [this, link, sequence] { network_.ToAgent(link, agent::HeartbeatAnswered{sequence}); };
  if (sim_.mutant() == Mutant::kConfirmTooEarly) return answer();
  // It tells the agent that all it said before is durable.
  core_->answers.emplace_back(core_->steps, answer);
  ReleaseDurable();
}

void Coordinator::OnLinkClosed(int64_t link) {
  // The lease goes on: the agent may be back before it runs out.
  sim_.Trace(absl::StrCat("coordinator has lost link ", link));
}

void Coordinator::Request(core::Event event) {
  if (!up_) return;
  if (auto* submitted = std::get_if<core::JobSubmitted>(&event);
      submitted != nullptr && sim_.mutant() == Mutant::kLoseIdempotency) {
    submitted->idempotency_key.clear();
  }
  Later(sim_.Between(absl::Milliseconds(1), absl::Milliseconds(10)), [this, event = std::move(event)] { Post(event); });
}

void Coordinator::Post(const core::Event& event) {
  sim_.Trace(absl::StrCat("event ", Describe(event)));
  std::vector<core::Command> commands = core::Step(core_->state, event, sim_.now());
  for (const std::string& broken : core::FindViolations(core_->state)) sim_.Violation(broken);
  for (const auto& [id, node] : core_->state.nodes) {
    if (node.standing.trust == NodeTrust::kBurnIn) sim_.Reached("step with a node in burn-in");
  }
  for (const core::Command& command : commands) {
    // The new lease begins with the step: the one it takes the place of might run out before it is durable.
    const auto* admit = std::get_if<core::AdmitWorker>(&command);
    if (admit == nullptr || sim_.mutant() == Mutant::kGrantLeaseLate) continue;
    core_->leases.Grant(admit->node, admit->incarnation, sim_.now());
  }
  runtime::StepOutput output = runtime::SortCommands(core_->state, std::move(commands));
  for (const core::Command& command : output.inward) CarryOut(command);
  output.inward.clear();
  if (sim_.mutant() == Mutant::kSendBeforePersist) {
    for (const core::Command& command : output.outbox) CarryOut(command);
    output.outbox.clear();
  }
  SpoilRecords(output.changes);
  ++core_->steps;
  core_->pipeline.Add(std::move(output));
  ReleaseDurable();
  BeginCommit();
}

void Coordinator::SpoilRecords(std::vector<store::Change>& changes) {
  if (sim_.mutant() == Mutant::kLoseJobRecords && sim_.Chance(0.02)) {
    std::erase_if(changes, [](const store::Change& c) { return std::holds_alternative<store::PutJob>(c); });
  }
  if (sim_.mutant() != Mutant::kForgetCounters) return;
  for (store::Change& change : changes) {
    auto* put = std::get_if<store::PutJob>(&change);
    if (put == nullptr) continue;
    auto stored = store_.jobs().find(put->job->id);
    if (stored == store_.jobs().end()) continue;
    auto job = std::make_shared<Job>(*put->job);
    job->last_attempt = stored->second.last_attempt;
    job->last_generation = stored->second.last_generation;
    put->job = std::move(job);
  }
}

void Coordinator::BeginCommit() {
  if (sim_.now().monotonic < retry_at_) return;
  std::shared_ptr<const std::vector<store::Change>> batch = core_->pipeline.Begin();
  if (batch == nullptr) return;
  Later(sim_.Between(absl::Microseconds(200), sim_.Chance(0.05) ? 20 * commit_time_ : commit_time_),
        [this, batch] { EndCommit(*batch); });
}

void Coordinator::EndCommit(const std::vector<store::Change>& batch) {
  if (sim_.now().monotonic < disk_full_until_) {
    sim_.Reached("commit failed");
    core_->pipeline.Failed();
    retry_at_ = sim_.now().monotonic + kCommitRetry;
    Later(kCommitRetry, [this] { BeginCommit(); });
    return;
  }
  for (const store::Change& change : batch) {
    std::string broken = store_.Apply(change);
    if (!broken.empty()) sim_.Violation(broken);
  }
  if (crash_after_commit_.has_value()) {
    sim_.Reached("coordinator crash between persist and send");
    sim_.After(*crash_after_commit_, [this] { Start(); });
    Crash();
    return;
  }
  core_->pipeline.Succeeded();
  ReleaseDurable();
  if (core_->pipeline.empty() && sim_.Chance(kStoreCheckShare) && !store_.Holds(core_->state)) {
    sim_.Violation("the store is not the state");
  }
  BeginCommit();
}

void Coordinator::ReleaseDurable() {
  for (const runtime::StepOutput& step : core_->pipeline.TakeDurable()) {
    ++core_->durable_steps;
    for (const core::Command& command : step.outbox) CarryOut(command);
  }
  auto& answers = core_->answers;
  size_t ready = 0;
  while (ready < answers.size() && answers[ready].first <= core_->durable_steps) answers[ready++].second();
  answers.erase(answers.begin(), answers.begin() + ready);
}

// Whatever carries a generation may leave only when that generation is durable.
void Coordinator::CheckFenced(const GenerationId& generation) {
  auto job = store_.jobs().find(generation.job);
  if (job == store_.jobs().end() || generation.generation <= job->second.last_generation) return;
  sim_.Violation(absl::StrCat("generation ", generation.generation, " of ", generation.job.value(), " was sent while ",
                              job->second.last_generation, " was durable"));
}

void Coordinator::SendOrder(const NodeId& node, const agent::Event& order) {
  auto link = core_->links.find(node);
  if (link != core_->links.end()) network_.ToAgent(link->second, order);
}

void Coordinator::Admit(const core::AdmitWorker& command) {
  if (sim_.mutant() == Mutant::kGrantLeaseLate) {
    core_->leases.Grant(command.node, command.incarnation, sim_.now());
  }
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
                   if (sim_.mutant() != Mutant::kReleaseTooEarly) return;
                   Later(absl::ZeroDuration(), [this, c] { Post(core::GangReleased{c.node, c.generation}); });
                 },
                 [&](const core::AnswerCheckpoint& c) { SendOrder(c.node, ToOrder(c)); },
                 [&](const core::AdmitWorker& c) { Admit(c); },
                 [&](const core::RefuseWorker& c) {
                   sim_.Reached("worker refused");
                   network_.CloseAtCoordinator(c.link);
                 },
                 [&](const core::ReplyToUser& c) { reply_(c); },
                 [&](const core::ArmTimer& c) {
                   Later(c.delay, [this, timer = c.timer] { Post(core::TimerFired{timer}); });
                 },
                 [&](const core::RequestPlan&) { Plan(); },
                 // Rendezvous keys are not simulated; records went to the store.
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
  // The snapshot is taken when the step is over.
  Later(absl::ZeroDuration(), [this] {
    core::PlanReady ready{placement::MakePlan(core::MakeSnapshot(core_->state))};
    Later(sim_.Between(absl::Milliseconds(1), absl::Milliseconds(100)), [this, ready = std::move(ready)] {
      core_->planning = false;
      if (ready.plan.revision != core_->state.counters.revision) sim_.Reached("plan was stale");
      Post(ready);
      if (std::exchange(core_->plan_again, false)) Plan();
    });
  });
}

void Coordinator::WatchLeases() {
  Later(absl::Seconds(1), [this] {
    for (const runtime::LeaseTable::Expired& lost : core_->leases.TakeExpired(sim_.now())) {
      sim_.Reached("lease expired");
      auto link = core_->links.find(lost.node);
      if (link != core_->links.end()) network_.CloseAtCoordinator(link->second);
      core_->links.erase(lost.node);
      Post(core::WorkerLost{lost.node, lost.incarnation, "no heartbeat for 10s"});
    }
    WatchLeases();
  });
}

}  // namespace llmctl::simulator
