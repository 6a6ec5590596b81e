#include "simulator/trainers.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"
#include "worker/contract/exit_codes.h"

namespace llmctl::simulator {
namespace {

constexpr int kBatch = 12;
constexpr absl::Duration kGroupTimeout = absl::Seconds(60);

std::string Name(const Trainers::Rank& id) {
  return absl::StrCat(id.generation.job.value(), "/g", id.generation.generation, "/r", id.rank);
}

std::string AddressKey(int rank) { return absl::StrCat("address/", rank); }
std::string AddressOf(const Trainers::Rank& id) { return absl::StrCat("address of ", Name(id)); }

}  // namespace

Trainers::Process* Trainers::Find(const Rank& id) {
  auto group = groups_.find(id.generation);
  if (group == groups_.end()) return nullptr;
  auto process = group->second.processes.find(id.rank);
  if (process == group->second.processes.end() || !process->second.alive) return nullptr;
  return &process->second;
}

void Trainers::CheckExclusive(const Rank& id, const Outlet& outlet) {
  for (const Rank& other : alive_) {
    const Outlet& used = Find(other)->outlet;
    if (used.host == outlet.host && used.device == outlet.device) {
      sim_.Violation(absl::StrCat("device ", outlet.device, " of host ", outlet.host, " is used by ", Name(other),
                                  " and started for ", Name(id)));
    }
    if (other == id) sim_.Violation(absl::StrCat(Name(id), " runs twice"));
  }
}

void Trainers::Start(const Rank& id, int world_size, const std::string& config, Outlet outlet) {
  CheckExclusive(id, outlet);
  std::vector<std::string> parts = absl::StrSplit(config, '|');
  CHECK_EQ(parts.size(), 3u) << config;
  Group& group = groups_[id.generation];
  group.world_size = world_size;
  group.workload = DecodeWorkload(parts[0]);
  if (!group.formed) CHECK(absl::SimpleAtoi(parts[1], &group.step)) << config;
  bool over = is_over_(id.generation);
  if (over) sim_.Reached(Probe::kStartBehindTime);
  if (!over && !parts[2].empty() && !disk_.checkpoints.contains(parts[2])) {
    sim_.Violation(absl::StrCat(Name(id), " is to go on from ", parts[2], ", which was removed or never written"));
  }
  sim_.Trace({'t', id.generation.generation, id.rank, outlet.host}, [&] {
    return absl::StrCat("trainer ", Name(id), " starts on host ", outlet.host, " at step ", group.step);
  });
  group.processes[id.rank] = Process{.outlet = std::move(outlet)};
  alive_.push_back(id);
  // Loading the libraries takes a while.
  sim_.After(sim_.dice().Between(absl::Milliseconds(200), absl::Seconds(2)), [this, id] {
    if (Process* process = Find(id)) {
      process->outlet.say(contract::StoreRequest{.request_id = kSetAddress,
                                                 .operation = contract::StoreOperation::kSet,
                                                 .key = AddressKey(id.rank),
                                                 .value = AddressOf(id)});
    }
  });
  sim_.After(kGroupTimeout, [this, id] {
    if (Find(id) != nullptr && !groups_.at(id.generation).formed) {
      Fail(id, {.exit_code = contract::kExitInfrastructure, .fatal_message = "the group did not form"});
    }
  });
}

void Trainers::AnswerStore(const Rank& id, const contract::StoreReply& reply) {
  Process* process = Find(id);
  if (process == nullptr) return;
  const Group& group = groups_.at(id.generation);
  if (!reply.error.empty()) {
    sim_.Reached(Probe::kRendezvousLost);
    return Fail(id, {.exit_code = contract::kExitInfrastructure, .fatal_message = reply.error});
  }
  int neighbour = (id.rank + 1) % group.world_size;
  switch (reply.request_id) {
    case kSetAddress:
      process->outlet.say(contract::StoreRequest{.request_id = kCountArrivals,
                                                 .operation = contract::StoreOperation::kAdd,
                                                 .key = "arrivals",
                                                 .amount = 1});
      return;
    case kCountArrivals:
      // A restarted coordinator counts anew, so fewer is fine; more would be a rank that was counted twice.
      if (reply.number > group.world_size) {
        sim_.Violation(absl::StrCat(Name(id), " is arrival ", reply.number, " of ", group.world_size));
      }
      process->outlet.say(contract::StoreRequest{.request_id = kAwaitNeighbour,
                                                 .operation = contract::StoreOperation::kWait,
                                                 .key = AddressKey(neighbour)});
      return;
    case kAwaitNeighbour:
      if (std::string expected = AddressOf({id.generation, neighbour}); reply.value != expected) {
        sim_.Violation(absl::StrCat(Name(id), " looked for the ", expected, " and found the ", reply.value));
      }
      process->arrived = true;
      return FormIfComplete(id.generation);
    default: return;
  }
}

void Trainers::FormIfComplete(const GenerationId& id) {
  const Group& group = groups_.at(id);
  int arrived = 0;
  for (const auto& [rank, process] : group.processes) arrived += process.alive && process.arrived;
  if (arrived != group.world_size || group.broken) return;
  sim_.After(sim_.dice().Between(absl::Milliseconds(100), absl::Seconds(1)), [this, id] { Form(id); });
}

void Trainers::Form(const GenerationId& id) {
  Group& group = groups_.at(id);
  if (group.formed || group.broken) return;
  group.formed = true;
  for (auto& [rank, process] : group.processes) process.outlet.say(contract::Ready{group.step});
  ScheduleMilestone(id);
}

void Trainers::ScheduleMilestone(const GenerationId& id) {
  Group& group = groups_.at(id);
  int every = group.workload.checkpoint_every;
  int target = std::min(group.workload.steps, (group.step / every + 1) * every);
  group.step_began = sim_.now();
  int64_t milestone = ++group.milestone;
  absl::Duration took = absl::Milliseconds(group.workload.step_milliseconds) * (target - group.step);
  sim_.After(took, [this, id, milestone, target] { ReachMilestone(id, milestone, target); });
}

void Trainers::ReachMilestone(const GenerationId& id, int64_t milestone, int target) {
  Group& group = groups_.at(id);
  if (group.milestone != milestone || group.broken) return;
  if (sim_.now() < group.stalled_until) {
    sim_.After(group.stalled_until - sim_.now(),
               [this, id, milestone, target] { ReachMilestone(id, milestone, target); });
    return;
  }
  group.step = target;
  bool last = target == group.workload.steps;
  Save(id, last);
  if (!last) ScheduleMilestone(id);
}

void Trainers::Save(const GenerationId& id, bool last) {
  Group& group = groups_.at(id);
  auto writer = group.processes.find(0);
  if (writer == group.processes.end() || !writer->second.alive) return;
  contract::CheckpointCommit commit;
  commit.request_id = ++group.last_request;
  commit.step = group.step;
  commit.path = CheckpointPath(id, group.step);
  commit.manifest_digest = absl::StrCat("digest-", group.step, "-", id.generation);
  commit.next_sample = int64_t{group.step} * kBatch;
  if (last) group.awaited_request = commit.request_id;
  disk_.checkpoints.insert(commit.path);
  sim_.Trace({'s', id.generation, group.step},
             [&] { return absl::StrCat("trainer ", Name({id, 0}), " saved ", commit.path); });
  writer->second.outlet.say(std::move(commit));
}

void Trainers::Answer(const Rank& id, const contract::CheckpointCommitReply& reply) {
  if (Find(id) == nullptr) return;
  Group& group = groups_.at(id.generation);
  for (const std::string& path : reply.removable_paths) disk_.checkpoints.erase(path);
  if (reply.request_id != group.awaited_request) return;
  group.awaited_request = 0;
  if (!reply.committed) {
    sim_.Reached(Probe::kLastCheckpointRefused);
    Fail(id, {.exit_code = contract::kExitInfrastructure, .fatal_message = reply.error});
  } else {
    ExitAll(id.generation, group.step == group.workload.steps ? contract::kExitOk : contract::kExitYielded);
  }
}

void Trainers::Yield(const Rank& id) {
  Process* process = Find(id);
  if (process == nullptr) return;
  Group& group = groups_.at(id.generation);
  if (!group.formed) {
    End(id, {.exit_code = contract::kExitYielded});
    return;
  }
  if (group.yielding || group.broken) return;
  group.yielding = true;
  sim_.Reached(Probe::kTrainersYield);
  absl::Duration at = std::max(sim_.now() + absl::Milliseconds(group.workload.step_milliseconds), group.stalled_until);
  sim_.After(at - sim_.now(), [this, g = id.generation] { YieldNow(g); });
}

void Trainers::YieldNow(const GenerationId& id) {
  Group& group = groups_.at(id);
  if (group.broken || group.step == group.workload.steps) return;
  ++group.milestone;
  absl::Duration elapsed = sim_.now() - group.step_began;
  int done = static_cast<int>(elapsed / absl::Milliseconds(group.workload.step_milliseconds));
  group.step = std::min(group.workload.steps, group.step + std::max(1, done));
  Save(id, true);
}

void Trainers::ExitAll(const GenerationId& id, int code) {
  for (auto& [rank, process] : groups_.at(id).processes) {
    if (!process.alive || process.dying) continue;
    process.dying = true;
    sim_.After(sim_.dice().Between(absl::Milliseconds(10), absl::Milliseconds(900)), [this, id, rank = rank, code] {
      agent::ExitRecord exit;
      exit.exit_code = code;
      if (Find({id, rank}) != nullptr) End({id, rank}, exit);
    });
  }
}

void Trainers::Kill(const Rank& id, absl::Duration grace) {
  Process* process = Find(id);
  if (process == nullptr) return;
  absl::Duration takes = sim_.dice().Between(absl::ZeroDuration(), std::min(grace, absl::Seconds(1)));
  if (process->deaf || sim_.now() < groups_.at(id.generation).stalled_until) takes = grace;
  if (process->wedged) {
    takes += sim_.dice().Between(absl::Seconds(20), absl::Seconds(120));
    process->wedged = false;
  }
  sim_.After(takes, [this, id, grace] {
    if (Find(id) != nullptr) End(id, {.signal = grace > absl::ZeroDuration() ? 15 : 9, .stopped_by_agent = true});
  });
}

void Trainers::Fail(const Rank& id, agent::ExitRecord exit) {
  if (Find(id) != nullptr) End(id, std::move(exit));
}

void Trainers::Vanish(const Rank& id) {
  Process* process = Find(id);
  if (process == nullptr) return;
  process->alive = false;
  std::erase(alive_, id);
  BreakGroup(id.generation);
}

void Trainers::Wedge(const Rank& id) {
  if (Process* process = Find(id)) process->wedged = true;
}

void Trainers::Deafen(const Rank& id) {
  if (Process* process = Find(id)) process->deaf = true;
}

void Trainers::Pause(const Rank& id, absl::Duration length) {
  if (Find(id) == nullptr) return;
  Group& group = groups_.at(id.generation);
  group.stalled_until = std::max(group.stalled_until, sim_.now() + length);
}

bool Trainers::IsStalled(const GenerationId& generation) const {
  const Group& group = groups_.at(generation);
  bool any = std::any_of(group.processes.begin(), group.processes.end(), [](const auto& p) { return p.second.alive; });
  return any && sim_.now() < group.stalled_until;
}

void Trainers::End(const Rank& id, agent::ExitRecord exit) {
  Process& process = groups_.at(id.generation).processes.at(id.rank);
  process.alive = false;
  std::erase(alive_, id);
  sim_.Trace({'e', id.generation.generation, id.rank, exit.exit_code, exit.signal}, [&] {
    return absl::StrCat("trainer ", Name(id), " ends: code ", exit.exit_code, " signal ", exit.signal);
  });
  bool well = !exit.stopped_by_agent && exit.signal == 0 &&
              (exit.exit_code == contract::kExitOk || exit.exit_code == contract::kExitYielded);
  process.outlet.exit(std::move(exit));
  if (!well) BreakGroup(id.generation);
}

void Trainers::BreakGroup(const GenerationId& id) {
  Group& group = groups_.at(id);
  if (group.broken) return;
  group.broken = true;
  for (auto& [rank, process] : group.processes) {
    if (!process.alive) continue;
    if (sim_.dice().Happens(0.25)) {
      sim_.Reached(Probe::kRankHangs);
      continue;
    }
    sim_.After(sim_.dice().Between(absl::Milliseconds(10), absl::Seconds(5)), [this, id, rank = rank] {
      Fail({id, rank}, {.exit_code = contract::kExitInfrastructure, .fatal_message = "a peer has gone"});
    });
  }
}

std::vector<Trainers::Rank> Trainers::AliveOn(int host) const {
  std::vector<Rank> alive;
  for (const Rank& id : alive_) {
    if (groups_.at(id.generation).processes.at(id.rank).outlet.host == host) alive.push_back(id);
  }
  return alive;
}

}  // namespace llmctl::simulator
