// One step under way: the state it works on, what it has changed, what it will ask for.
//
// Handlers change records in place, Save() them, and queue commands; Finish() puts the records first, each once,
// whatever the order in which the handlers touched them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "coordinator/core/command.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/event.h"
#include "coordinator/core/state.h"
#include "coordinator/model/focus.h"

namespace llmctl::core {

class Turn {
 public:
  // `focus` may be null; else it hears of `event`'s entity, and what WorkOn() says.
  Turn(State& state, const Event& event, Instant now, Focus* focus);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  State& state;
  const Instant now;

  // The step goes on to this one of many: a crash from here on is blamed on it.
  void WorkOn(const JobId& job);
  void WorkOn(const NodeId& node);
  // It has been through them, and a crash is its event's entity's again.
  void WorkOnEvent();

  void Save(const Job& job);
  void Save(const Node& node);
  void Forget(const JobId& job);
  // Adds to the job's history and saves it.
  void Log(Job& job, absl::string_view kind, std::string text);

  void Send(Command command);
  // Dropped where the host has no link: its next Hello makes the core send what still applies.
  void SendToHost(const NodeId& node, Command command);
  // Room may have been made, by a device or a host: the whole queue is planned again.
  void RequestPlan() {
    ++state.room;
    plan_wanted_ = true;
  }
  // Only who is new in the queue can have become placeable.
  void RequestPlanOfNewcomers() { plan_wanted_ = true; }

  void Arm(Timer timer, absl::Duration delay);
  // Timers of the job that are still armed no longer mean anything.
  void Disarm(const JobId& job);
  void Disarm(const NodeId& node, Timer::Purpose purpose);

  // All commands of the step, in order. The records that it changed are in changed_jobs().
  std::vector<Command> Finish();
  const std::set<JobId>& changed_jobs() const { return jobs_; }
  const std::set<JobId>& forgotten_jobs() const { return forgotten_; }

 private:
  Focus* const focus_;
  const Entity event_entity_;
  std::set<JobId> jobs_;
  std::set<JobId> forgotten_;
  std::set<NodeId> nodes_;
  std::vector<AppendJobEvent> history_;
  std::vector<Command> outward_;
  bool plan_wanted_ = false;
};

}  // namespace llmctl::core
