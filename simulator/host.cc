#include "simulator/host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace llmctl::simulator {
namespace {

absl::Duration ShortDelay(Simulation& sim) {
  return sim.dice().Between(absl::Microseconds(100), absl::Milliseconds(5));
}

}  // namespace

Host::Host(Simulation& sim, Network& network, Trainers& trainers, SharedDisk& disk, Machine machine)
    : sim_(sim),
      network_(network),
      trainers_(trainers),
      shared_(disk),
      index_(machine.index),
      node_(std::move(machine.node)),
      devices_(machine.devices),
      clock_(machine.clock),
      has_power_(!machine.off) {}

void Host::PowerOff(Loss loss) {
  while (!agents_.empty()) EndAgent(agents_.begin()->first);
  has_power_ = false;
  sim_.Trace({'p', index_, loss.wipe}, [&] {
    return absl::StrCat(node_.value(), " (host ", index_, ")", loss.wipe ? " is wiped" : " loses power");
  });
  for (const Trainers::Rank& id : trainers_.AliveOn(index_)) trainers_.Vanish(id);
  standbys_.clear();
  for (auto it = disk_.shims.begin(); it != disk_.shims.end();) {
    Shim& shim = it->second;
    if (loss.records && sim_.dice().Happens(0.5)) {
      sim_.Reached(Probe::kExitRecordLost);
      it = disk_.shims.erase(it);
      continue;
    }
    shim.alive = false;
    if (!shim.exit.has_value()) {
      shim.exit = agent::ExitRecord{
          .signal = 9, .fatal_class = "infrastructure", .fatal_message = "the host was restarted"};
    }
    ++it;
  }
  if (!loss.wipe) return;
  disk_ = Disk{};
  fenced_.clear();
  released_.clear();
  offers_.clear();
}

void Host::PowerOn() {
  if (has_power_) return;
  has_power_ = true;
  ++boot_;
  StartAgent();
}

void Host::Heal() {
  disk_full_until_ = absl::ZeroDuration();
  unfit_ = false;
  hello_takes_ = absl::ZeroDuration();
  crash_in_step_.reset();
  if (!has_power_) PowerOn();
  StartAgent();
}

void Host::KillShim(const Trainers::Rank& id) {
  Key key(id.generation, id.rank);
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end() || !found->second.alive || found->second.exit.has_value()) return;
  // The trainer dies with its shim, and nobody is left to write a record: the agent makes one up.
  found->second.alive = false;
  found->second.exit =
      agent::ExitRecord{.signal = 9, .fatal_class = "infrastructure", .fatal_message = "the shim was killed"};
  trainers_.Vanish(id);
  TellAgents(absl::ZeroDuration(), agent::ShimDisconnected{id.generation, id.rank});
  TellAgents(ShortDelay(sim_), agent::RankExited{id.generation, id.rank, *found->second.exit});
}

void Host::TellAgents(absl::Duration delay, agent::Event event) {
  for (const auto& [life, agent] : agents_) {
    Later(life, delay, [this, life = life, event] { Do(life, event); });
  }
}

// The agent would refuse; the coordinator must not even ask.
void Host::CheckDevicesAreFree(const agent::StartOrdered& order) {
  for (const Trainers::Rank& alive : trainers_.AliveOn(index_)) {
    auto shim = disk_.shims.find({alive.generation, alive.rank});
    if (alive.generation == order.generation || shim == disk_.shims.end()) continue;
    // A repeated order of the past asks for what was free then; it is refused.
    auto fence = fenced_.find(order.generation.job);
    if (fence != fenced_.end() && fence->second >= order.generation.generation) continue;
    for (const agent::RankOrder& rank : order.ranks) {
      if (rank.device != shim->second.device) continue;
      sim_.Violation(absl::StrCat("device ", rank.device, " of ", node_.value(), " was given to generation ",
                                  order.generation.generation, " of ", order.generation.job.value(),
                                  " while a process of ", alive.generation.job.value(), " has it"));
    }
  }
}

// A generation that this host was told to be over must not begin again.
void Host::CheckFenced(const GenerationId& generation) {
  auto fence = fenced_.find(generation.job);
  bool older = fence != fenced_.end() && fence->second > generation.generation;
  if (!older && !released_.contains(generation)) return;
  sim_.Violation(absl::StrCat(node_.value(), " starts generation ", generation.generation, " of ",
                              generation.job.value(), ", which was over there"));
}

void Host::Spawn(int64_t life, const agent::SpawnShim& command) {
  CheckFenced(command.generation);
  if (command.standby != 0) TakeStandby(command.standby);
  Key key(command.generation, command.rank);
  Shim& shim = disk_.shims[key];
  shim = Shim{};
  shim.device = command.assignment.device;
  shim.orphan_timeout = command.start.orphan_timeout;
  shim.pid = 1000 + sim_.dice().Pick(30000);
  // The shim is up before anything else of this host can go wrong with it; its agent hears of it a little later.
  Trainers::Outlet outlet;
  outlet.host = index_;
  outlet.device = shim.device;
  outlet.say = [this, key](contract::Message message) { HearFromTrainer(key, std::move(message)); };
  outlet.exit = [this, key](agent::ExitRecord exit) { TrainerExited(key, std::move(exit)); };
  Later(life, ShortDelay(sim_), [this, life, key] {
    auto found = disk_.shims.find(key);
    if (found == disk_.shims.end() || !found->second.alive) return;
    Greet(life, key);
    Do(life, agent::ShimMessage{key.first, key.second, contract::Started{found->second.pid}});
  });
  trainers_.Start({key.first, key.second}, command.assignment.world_size, command.start.trainer_config,
                  std::move(outlet));
}

// The agent has opened the shim's socket.
void Host::Greet(int64_t life, const Key& key) {
  disk_.shims.at(key).agent = life;
  Do(life, agent::ShimConnected{key.first, key.second});
}

void Host::SayToTrainer(int64_t life, const Key& key, const contract::Message& message) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  Shim& shim = found->second;
  if (shim.agent != life) {
    sim_.Violation(absl::StrCat("the shim of rank ", key.second, " of ", key.first.job.value(), " on ", node_.value(),
                                " has two agents"));
  }
  Trainers::Rank id{key.first, key.second};
  if (std::holds_alternative<contract::Yield>(message)) trainers_.Yield(id);
  if (const auto* kill = std::get_if<contract::Kill>(&message)) trainers_.Kill(id, absl::Seconds(kill->grace_seconds));
  if (const auto* reply = std::get_if<contract::CheckpointCommitReply>(&message)) {
    shim.commits.erase(reply->request_id);
    trainers_.Answer(id, *reply);
  }
  if (const auto* reply = std::get_if<contract::StoreReply>(&message)) {
    shim.store_requests.erase(reply->request_id);
    trainers_.AnswerStore(id, *reply);
  }
}

void Host::HearFromTrainer(const Key& key, contract::Message message) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  Shim& shim = found->second;
  if (std::holds_alternative<contract::Ready>(message)) shim.ready = true;
  if (const auto* commit = std::get_if<contract::CheckpointCommit>(&message)) {
    shim.commits[commit->request_id] = *commit;
  }
  if (const auto* request = std::get_if<contract::StoreRequest>(&message)) {
    shim.store_requests[request->request_id] = *request;
  }
  if (agents_.empty()) {
    sim_.Reached(Probe::kShimKeptMessage);
    return;
  }
  TellAgents(ShortDelay(sim_), agent::ShimMessage{key.first, key.second, std::move(message)});
}

void Host::TrainerExited(const Key& key, agent::ExitRecord exit) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  found->second.exit = exit;
  if (agents_.empty()) {
    sim_.Reached(Probe::kExitWhileAgentAway);
    return;
  }
  // Behind everything that the trainer said before.
  TellAgents(absl::Milliseconds(6), agent::RankExited{key.first, key.second, std::move(exit)});
}

}  // namespace llmctl::simulator
