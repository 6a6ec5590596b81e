#include "coordinator/core/turn.h"

#include <utility>

namespace llmctl::core {
namespace {

bool AwaitsOthers(Timer::Purpose purpose) {
  switch (purpose) {
    case Timer::Purpose::kProbe:
    case Timer::Purpose::kStart:
    case Timer::Purpose::kStop:
    case Timer::Purpose::kGrace:
    case Timer::Purpose::kDrain: return true;
    case Timer::Purpose::kBackoff:
    case Timer::Purpose::kTimeLimit:
    case Timer::Purpose::kPreflight:
    case Timer::Purpose::kBurnIn:
    case Timer::Purpose::kParole: break;
  }
  return false;
}

}  // namespace

Turn::Turn(State& state, const Event& event, Instant now, Focus* focus)
    : state(state), now(now), focus_(focus), event_entity_(focus == nullptr ? Entity() : EntityOf(state, event)) {
  WorkOnEvent();
}

void Turn::WorkOn(const JobId& job) {
  if (focus_ != nullptr) focus_->Set(Focus::Stage::kStep, kJobEntity, job.value());
}

void Turn::WorkOn(const NodeId& node) {
  if (focus_ != nullptr) focus_->Set(Focus::Stage::kStep, kNodeEntity, node.value());
}

void Turn::WorkOnEvent() {
  if (focus_ == nullptr) return;
  focus_->Clear();
  if (!event_entity_.kind.empty()) focus_->Set(Focus::Stage::kStep, event_entity_.kind, event_entity_.id);
}

void Turn::Save(const Job& job) { jobs_.insert(job.id); }

void Turn::Save(const Node& node) {
  nodes_.insert(node.id);
  // Whatever has changed may let ranks in.
  ++state.room;
}

void Turn::Forget(const JobId& job) {
  jobs_.erase(job);
  forgotten_.insert(job);
}

void Turn::Log(Job& job, absl::string_view kind, std::string text) {
  JobEventRecord event;
  event.sequence = ++job.last_event;
  event.time = now.wall;
  event.attempt = job.last_attempt;
  event.generation = job.last_generation;
  event.kind = std::string(kind);
  event.text = std::move(text);
  history_.push_back({job.id, std::move(event)});
  Save(job);
}

void Turn::Send(Command command) { outward_.push_back(std::move(command)); }

void Turn::SendToHost(const NodeId& node, Command command) {
  if (state.connected.contains(node)) outward_.push_back(std::move(command));
}

void Turn::Arm(Timer timer, absl::Duration delay) {
  int64_t id = state.next_timer++;
  outward_.push_back(ArmTimer{id, delay, AwaitsOthers(timer.purpose)});
  state.timers.emplace(id, std::move(timer));
}

void Turn::Disarm(const JobId& job) {
  std::erase_if(state.timers, [&](const auto& entry) { return entry.second.job == job; });
}

void Turn::Disarm(const NodeId& node, Timer::Purpose purpose) {
  std::erase_if(state.timers, [&](const auto& entry) {
    return entry.second.node == node && entry.second.purpose == purpose;
  });
}

std::vector<Command> Turn::Finish() {
  std::vector<Command> out;
  // With the counters and the plan.
  out.reserve(jobs_.size() + forgotten_.size() + nodes_.size() + history_.size() + outward_.size() + 2);
  if (!jobs_.empty() || !forgotten_.empty() || !nodes_.empty()) {
    ++state.counters.revision;
    out.push_back(PersistCounters{});
  }
  for (const JobId& job : jobs_) out.push_back(PersistJob{job});
  for (const JobId& job : forgotten_) out.push_back(ForgetJob{job});
  for (const NodeId& node : nodes_) out.push_back(PersistNode{node});
  for (AppendJobEvent& event : history_) out.push_back(std::move(event));
  for (Command& command : outward_) out.push_back(std::move(command));
  if (plan_wanted_) out.push_back(core::RequestPlan{});
  return out;
}

}  // namespace llmctl::core
