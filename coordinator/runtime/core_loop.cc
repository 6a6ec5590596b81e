#include "coordinator/runtime/core_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/failpoint.h"
#include "common/base/overloaded.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/snapshot_for_placement.h"
#include "coordinator/core/step.h"

namespace llmctl::runtime {
namespace {

constexpr absl::Duration kRetryFirst = absl::Milliseconds(100);
constexpr absl::Duration kRetryMost = absl::Seconds(2);
// Longer than a hiccup of a disk, shorter than the deadline of any caller.
constexpr absl::Duration kReplyPatience = absl::Seconds(1);
// In which every host that has hung up connects again: twice an agent's longest pause between attempts, and a margin.
constexpr absl::Duration kReconnectTime = absl::Seconds(5);
// How long a stop waits for a disk that does not take the last commit.
constexpr absl::Duration kStopPatience = absl::Seconds(5);
// A plan of the whole queue costs by its length. Plans get a tenth of the core's thread at most, and half of another,
// so that thousands of waiting jobs do not slow down the rest; a first plan never waits.
constexpr int kPlanningShare = 10;

bool WorthRetrying(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kPermissionDenied: return true;
    default: return false;
  }
}

}  // namespace

CoreLoop::CoreLoop(Options options, Parts parts, core::State state, store::Store& store, int64_t term)
    : options_(std::move(options)),
      parts_(parts),
      tick_(std::min(options_.lease / 4, absl::Seconds(1))),
      state_(std::move(state)),
      leases_(options_.lease),
      committer_(store, term,
                 [this](absl::Status outcome, absl::Duration took) {
                   parts_.metrics.ObserveCommit(took, outcome.ok());
                   parts_.inbox.PostCommit(std::move(outcome));
                 }),
      planner_([this](Plan plan, absl::Duration took) {
        parts_.metrics.ObservePlan(took);
        parts_.inbox.Post(Priority::kPlan, core::PlanReady{std::move(plan)});
      }) {}

void CoreLoop::Run() {
  last_round_ = Now();
  Deliver(core::CoordinatorStarted{options_.start_grace}, last_round_);
  absl::Duration stop_deadline = absl::InfiniteDuration();
  while (!fatal_) {
    Inbox::Items items =
        parts_.inbox.Wait(std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(NextWake(Now())));
    Instant now = Now();
    MakeUpForStall(now);
    for (const Inbox::Renewal& renewal : items.renewals) leases_.Renew(renewal.node, renewal.incarnation, now);
    if (items.commit) HandleCommit(*items.commit, now);
    for (Inbox::Item& item : items.events) TakeItem(item, now);
    FireTimers(now);
    ExpireLeases(now);
    parts_.logs.Expire(now);
    parts_.inspector.Expire(now);
    parts_.hub.Expire(now.monotonic);
    StartPlan(now);
    // Before the answers: the disk works while they leave.
    StartCommit(now);
    ReleaseDurable();
    if (items.stopping) {
      if (stop_deadline == absl::InfiniteDuration()) stop_deadline = now.monotonic + kStopPatience;
      bool all_durable = pipeline_.empty() && items.events.empty();
      if (all_durable || now.monotonic >= stop_deadline) return;
    }
  }
}

void CoreLoop::TakeItem(Inbox::Item& item, Instant now) {
  if (auto* acknowledgement = std::get_if<Acknowledgement>(&item)) {
    return pipeline_.Acknowledge(acknowledgement->link, std::move(acknowledgement->give), state_.counters.revision);
  }
  if (auto* pardon = std::get_if<Pardon>(&item)) {
    pipeline_.Add({.changes = parts_.quarantine.Release(pardon->entity),
                   .outbox = {core::ReplyToUser{.request = pardon->request}},
                   .revision = state_.counters.revision});
    return;
  }
  auto& event = std::get<core::Event>(item);
  if (auto* plan = std::get_if<core::PlanReady>(&event)) return TakePlan(*plan, now);
  // When many hosts connect at once, some have hung up before their turn. Their next hello counts.
  const auto* hello = std::get_if<core::WorkerConnected>(&event);
  if (hello && !parts_.links.Has(hello->link)) return;
  Deliver(event, now);
}

absl::Duration CoreLoop::NextWake(Instant now) const {
  // A lease's end is looked at when it comes, not a tick later: whoever waits for a lost host waits for that.
  absl::Duration wake = std::min(tick_, leases_.next_deadline() - now.monotonic);
  wake = std::min(wake, timers_.next_due() - now.monotonic);
  if (plan_wanted_ && !planning_) wake = std::min(wake, plan_not_before_ - now.monotonic);
  // While it is being tried again, the outcome wakes us.
  bool retry_waits = retry_delay_ > absl::ZeroDuration() && !pipeline_.in_flight();
  if (retry_waits) wake = std::min(wake, retry_at_ - now.monotonic);
  return std::max(wake, absl::ZeroDuration());
}

std::vector<core::Command> CoreLoop::StepWatched(const core::Event& event, Instant now) {
  if (options_.focus == nullptr) return core::Step(state_, event, now);
  core::Entity entity = core::EntityOf(state_, event);
  if (!entity.kind.empty()) options_.focus->Set(Focus::Stage::kStep, entity.kind, entity.id);
  HitFailpoint(absl::StrCat("coordinator.step.", entity.id));
  return core::Step(state_, event, now, options_.focus);
}

StepOutput CoreLoop::Step(const core::Event& event, Instant now) {
  std::vector<core::Command> commands = StepWatched(event, now);
  for (const core::Command& command : commands) {
    // Not when it is durable: the lease that it takes the place of might run out before.
    const auto* admit = std::get_if<core::AdmitWorker>(&command);
    if (admit) leases_.Reserve(admit->node, admit->incarnation);
  }
  StepOutput output = SortCommands(state_, std::move(commands));
  for (const core::Command& command : output.inward) CarryOutInward(command, now);
  output.inward.clear();
  if (const auto* resumed = std::get_if<core::JobResumed>(&event)) {
    std::string entity = absl::StrCat(core::kJobEntity, " ", resumed->job.value());
    // Whoever resumes a job that was kept apart gives it all its chances again.
    if (output.changes.empty() || !parts_.quarantine.Contains(entity)) return output;
    for (store::Change& change : parts_.quarantine.Release(entity)) output.changes.push_back(std::move(change));
  }
  return output;
}

void CoreLoop::CarryOutInward(const core::Command& command, Instant now) {
  if (const auto* arm = std::get_if<core::ArmTimer>(&command)) {
    timers_.Arm(*arm, now);
  } else if (std::holds_alternative<core::RequestPlan>(command)) {
    plan_wanted_ = true;
  }
}

void CoreLoop::MakeUpForStall(Instant now) {
  absl::Duration away = now - last_round_;
  last_round_ = now;
  // A round waits for at most a tick, so this much more was not our choice.
  if (away <= 2 * tick_) return;
  Log(LogLevel::kWarning, "coordinator-stalled", {{"for", absl::FormatDuration(away)}});
  parts_.metrics.CountStall();
  absl::Duration earliest = now.monotonic;
  // An agent's pauses grow with the time that it has been trying.
  if (away >= options_.lease) earliest += options_.lease + std::min(2 * away, kReconnectTime);
  leases_.Extend(away);
  leases_.KeepUntil(earliest);
  timers_.Extend(away, earliest);
  parts_.logs.Extend(away);
  parts_.inspector.Extend(away);
}

void CoreLoop::ExpireLeases(Instant now) {
  for (const LeaseTable::Expired& lost : leases_.TakeExpired(now)) {
    std::string reason = absl::StrCat("no heartbeat for ", absl::FormatDuration(options_.lease));
    Log(LogLevel::kWarning, "lease-expired", {{"node", lost.node.value()}, {"incarnation", lost.incarnation}});
    parts_.metrics.CountLeaseExpired();
    // A connection that is still open must say hello again: what it holds has to be compared first.
    parts_.links.Close(lost.node, absl::StrCat("the lease ran out: ", reason, "; connect again"));
    Deliver(core::WorkerLost{lost.node, lost.incarnation, reason}, now);
  }
}

void CoreLoop::FireTimers(Instant now) {
  for (int64_t timer : timers_.TakeDue(now)) Deliver(core::TimerFired{timer}, now);
}

void CoreLoop::HandleCommit(const absl::Status& outcome, Instant now) {
  if (outcome.ok()) {
    pipeline_.Succeeded();
    if (retry_delay_ > absl::ZeroDuration()) {
      Log(LogLevel::kInfo, "store-writable-again");
      parts_.gate.Open();
    }
    retry_delay_ = absl::ZeroDuration();
    retry_at_ = -absl::InfiniteDuration();
    return;
  }
  pipeline_.Failed();
  HandleFailedCommit(outcome, now);
}

void CoreLoop::HandleFailedCommit(const absl::Status& outcome, Instant now) {
  if (!WorthRetrying(outcome)) {
    fatal_ = true;
    options_.on_fatal(outcome);
    return;
  }
  if (retry_delay_ == absl::ZeroDuration()) failing_since_ = now.monotonic;
  retry_delay_ = retry_delay_ == absl::ZeroDuration() ? kRetryFirst : std::min(2 * retry_delay_, kRetryMost);
  retry_at_ = now.monotonic + retry_delay_;
  Log(LogLevel::kError, "store-commit-failed",
      {{"error", outcome.ToString()}, {"retry_in", absl::FormatDuration(retry_delay_)}});
  absl::Status refusal = Annotate(outcome, "the coordinator cannot write its store and takes no changes until it can");
  parts_.gate.Close(refusal);
  if (now.monotonic - failing_since_ < kReplyPatience) return;
  absl::Status unknown(refusal.code(), absl::StrCat(refusal.message(), "; this request may still take effect then: ",
                                                    "look, or repeat it with the same idempotency key"));
  pipeline_.VisitWaiting([&](const StepOutput& step) {
    for (const core::Command& command : step.outbox) {
      const auto* reply = std::get_if<core::ReplyToUser>(&command);
      if (reply) parts_.replies.Answer(reply->request, {.status = unknown});
    }
  });
}

void CoreLoop::StartCommit(Instant now) {
  if (now.monotonic < retry_at_) return;
  if (auto batch = pipeline_.Begin()) committer_.Commit(std::move(batch));
}

void CoreLoop::StartPlan(Instant now) {
  if (!plan_wanted_ || planning_ || now.monotonic < plan_not_before_) return;
  plan_wanted_ = false;
  planning_ = true;
  Instant begin = Now();
  planner_.MakePlan(core::MakeSnapshot(state_));
  plan_begun_ = begin.monotonic;
  planning_cost_ = Now() - begin;
}

void CoreLoop::TakePlan(core::PlanReady& plan, Instant now) {
  Instant begin = Now();
  StepOutput output = Step(plan, now);
  output.left_out = std::move(plan.plan.unplaced);
  Queue(std::move(output));
  planning_ = false;
  Instant end = Now();
  planning_cost_ += end - begin;
  absl::Duration took = end.monotonic - plan_begun_;
  plan_not_before_ = end.monotonic + std::max((kPlanningShare - 1) * planning_cost_, took);
}

void CoreLoop::ReleaseDurable() {
  std::vector<StepOutput> steps = pipeline_.TakeDurable();
  if (steps.empty()) return;
  // Readers first: whoever is told of a change must be able to see it.
  parts_.hub.Publish(steps);
  for (StepOutput& step : steps) {
    for (const store::Change& change : step.changes) {
      if (const auto* erased = std::get_if<store::EraseJob>(&change)) {
        parts_.progress.Forget(erased->job);
        parts_.ranks.Forget(erased->job);
      }
      const auto* put = std::get_if<store::PutJob>(&change);
      if (put && IsTerminal(put->job->phase)) parts_.ranks.Forget(put->job->id);
    }
    for (const core::Command& command : step.outbox) CarryOut(command);
    for (const auto& [link, give] : step.acknowledge) give();
  }
}

void CoreLoop::CarryOut(const core::Command& command) {
  auto send = [&](const NodeId& node, auto&& deliver) {
    if (std::shared_ptr<HostLink> link = parts_.links.Find(node)) deliver(*link);
  };
  std::visit(Overloaded{
                 [&](const core::ProbeHost& c) { send(c.node, [&](HostLink& link) { link.Probe(c); }); },
                 [&](const core::RunPreflight& c) { send(c.node, [&](HostLink& link) { link.Preflight(c); }); },
                 [&](const core::StartRanks& c) {
                   std::vector<std::string> addresses;
                   for (const Slot& slot : c.slots) {
                     auto node = state_.nodes.find(slot.node);
                     addresses.push_back(node == state_.nodes.end() ? "" : node->second.fabric_address);
                   }
                   send(c.node, [&](HostLink& link) { link.Start(c, addresses); });
                 },
                 [&](const core::StopRanks& c) { send(c.node, [&](HostLink& link) { link.Stop(c); }); },
                 [&](const core::AnswerCheckpoint& c) { send(c.node, [&](HostLink& link) { link.Answer(c); }); },
                 [&](const core::AdmitWorker& c) {
                   leases_.Grant(c.node, c.incarnation, Now());
                   parts_.links.Admit(c.node, c.link);
                 },
                 [&](const core::RefuseWorker& c) { parts_.links.Refuse(c.link, c.reason); },
                 [&](const core::DropRendezvous& c) { parts_.rendezvous.Drop(c.generation); },
                 [&](const core::ReplyToUser& c) {
                   std::shared_ptr<const Snapshot> snapshot = parts_.hub.Get();
                   Reply reply{.status = c.status,
                               .already_existed = c.already_existed,
                               .revision = snapshot->revision()};
                   if (const JobView* view = c.job.empty() ? nullptr : snapshot->FindJob(c.job)) reply.job = *view;
                   parts_.replies.Answer(c.request, reply);
                 },
                 // Sorted out by SortCommands().
                 [](const auto&) {},
             },
             command);
}

}  // namespace llmctl::runtime
