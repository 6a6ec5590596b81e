#include "simulator/host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kLinkTimeout = absl::Seconds(10);

absl::Duration ShortDelay(Simulation& sim) { return sim.Between(absl::Microseconds(100), absl::Milliseconds(5)); }

}  // namespace

Host::Host(Simulation& sim, Network& network, Trainers& trainers, SharedDisk& disk, Machine machine)
    : sim_(sim),
      network_(network),
      trainers_(trainers),
      shared_(disk),
      index_(machine.index),
      devices_(machine.devices) {}

Node Host::Describe() const {
  Node node;
  node.id = this->node();
  node.boot_id = absl::StrCat("boot-", index_, "-", boot_);
  node.incarnation = disk_.incarnation;
  node.trainer_digest = "trainer";
  for (int i = 0; i < devices_; ++i) node.devices.push_back({.index = i, .kind = "cpu"});
  return node;
}

void Host::Later(absl::Duration delay, std::function<void()> action) {
  sim_.After(delay, [this, life = life_, action = std::move(action)] {
    if (agent_up_ && life_ == life) action();
  });
}

void Host::Do(const agent::Event& event) {
  std::vector<agent::Command> commands = agent::Step(agent_, event, sim_.now());
  // Before it dials it does not know yet which of the shims that it found are alive.
  if (agent_.dialled) {
    for (const std::string& broken : agent::FindViolations(agent_)) {
      sim_.Violation(absl::StrCat("agent of ", node().value(), ": ", broken));
    }
  }
  for (const agent::Command& command : commands) Execute(command);
}

void Host::StartAgent() {
  if (agent_up_ || !has_power_) return;
  agent_up_ = true;
  ++life_;
  ++disk_.incarnation;
  agent_ = agent::State{};
  agent_.standbys_wanted = 1;
  standbys_.clear();
  agent_.fences = disk_.fences;
  agent_.outbox = disk_.outbox;
  for (int i = 0; i < devices_; ++i) agent_.devices.insert(i);
  sim_.Trace(absl::StrCat("agent of ", node().value(), " starts, incarnation ", disk_.incarnation));
  for (const auto& [key, shim] : disk_.shims) {
    sim_.Reached("shim re-adopted by a new agent");
    Do(agent::ShimFound{key.first, key.second, shim.device, shim.orphan_timeout});
  }
  Do(agent::AgentStarted{});
  for (const auto& [key, shim] : disk_.shims) {
    Later(ShortDelay(sim_), [this, key = key] { TellEverything(key); });
  }
}

void Host::TellEverything(const Key& key) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  const Shim shim = found->second;
  if (!shim.alive) {
    Do(agent::RankExited{key.first, key.second, *shim.exit});
    return;
  }
  Do(agent::ShimConnected{key.first, key.second});
  Do(agent::ShimMessage{key.first, key.second, contract::Started{shim.pid}});
  if (shim.ready) Do(agent::ShimMessage{key.first, key.second, contract::Ready{}});
  for (const auto& [id, commit] : shim.unanswered) Do(agent::ShimMessage{key.first, key.second, commit});
  if (shim.exit.has_value()) {
    Do(agent::RankExited{key.first, key.second, *shim.exit});
  } else {
    Do(agent::ShimMessage{key.first, key.second, contract::CaughtUp{}});
  }
}

void Host::CrashAgent() {
  if (!agent_up_) return;
  sim_.Trace(absl::StrCat("agent of ", node().value(), " crashes"));
  agent_up_ = false;
  ++life_;
  network_.CloseAtAgent(link_);
  link_ = 0;
}

void Host::PowerOff(bool wipe) {
  CrashAgent();
  has_power_ = false;
  sim_.Trace(absl::StrCat(node().value(), wipe ? " is wiped" : " loses power"));
  for (const Trainers::Rank& id : trainers_.AliveOn(index_)) trainers_.Vanish(id);
  for (auto& [key, shim] : disk_.shims) {
    shim.alive = false;
    if (!shim.exit.has_value()) {
      shim.exit = agent::ExitRecord{
          .signal = 9, .fatal_class = "infrastructure", .fatal_message = "the host was restarted"};
    }
  }
  if (wipe) disk_ = Disk{};
}

void Host::PowerOn() {
  has_power_ = true;
  ++boot_;
  StartAgent();
}

void Host::KillShim(const Trainers::Rank& id) {
  auto found = disk_.shims.find({id.generation, id.rank});
  if (found == disk_.shims.end() || !found->second.alive || found->second.exit.has_value()) return;
  // The trainer dies with its shim, and nobody is left to write a record.
  found->second.alive = false;
  found->second.exit =
      agent::ExitRecord{.signal = 9, .fatal_class = "infrastructure", .fatal_message = "the shim was killed"};
  trainers_.Vanish(id);
  if (!agent_up_) return;
  Do(agent::ShimDisconnected{id.generation, id.rank});
  Later(ShortDelay(sim_), [this, key = found->first, exit = *found->second.exit] {
    Do(agent::RankExited{key.first, key.second, exit});
  });
}

void Host::Execute(const agent::Command& command) {
  std::visit(
      Overloaded{
          [&](const agent::PersistFences&) { disk_.fences = agent_.fences; },
          [&](const agent::PersistOutbox&) { disk_.outbox = agent_.outbox; },
          [&](const agent::SpawnShim& c) { Spawn(c); },
          [&](const agent::SendToShim& c) {
            Later(ShortDelay(sim_), [this, c] { SayToTrainer({c.generation, c.rank}, c.message); });
          },
          [&](const agent::RetireShim& c) {
            on_retired_(c.generation, c.rank);
            disk_.shims.erase({c.generation, c.rank});
          },
          [&](const agent::StartStandby& c) { StartStandby(c.number); },
          [&](const agent::EndStandby& c) { standbys_.erase(c.number); },
          [&](const agent::DialCoordinator&) { Dial(); },
          [&](const agent::SendToCoordinator& c) { network_.ToCoordinator(link_, c.message); },
          [&](const agent::RunProbe& c) {
            Later(sim_.Between(absl::Milliseconds(1), absl::Milliseconds(50)), [this, c] { Probe(c.probe); });
          },
          [&](const agent::RemoveProbe& c) { shared_.nonces.erase(c.checkpoint_directory + "/" + c.nonce); },
          [&](const agent::RunPreflight&) {
            Later(sim_.Between(absl::Seconds(1), absl::Seconds(20)), [this, number = ++preflight_] {
              if (number == preflight_) EndPreflight(/*interrupted=*/false);
            });
          },
          [&](const agent::CancelPreflight&) {
            sim_.Reached("pre-flight cut short by a start");
            ++preflight_;
            Later(ShortDelay(sim_), [this] { EndPreflight(/*interrupted=*/true); });
          },
          [&](const agent::ArmTimer& c) {
            Later(c.delay, [this, timer = c.timer] { Do(agent::TimerFired{timer}); });
          },
          [&](const agent::CollectEvidence&) { sim_.Reached("evidence collected"); },
      },
      command);
}

void Host::Dial() {
  Later(sim_.Between(absl::Milliseconds(100), absl::Seconds(2)), [this] {
    if (link_ != 0) return;
    if (!coordinator_up_() || !network_.Reachable(index_)) return Dial();
    link_ = network_.Open(index_);
    heard_ = sim_.now().monotonic;
    sim_.Trace(absl::StrCat("agent of ", node().value(), " opens link ", link_));
    WatchLink(link_);
    Do(agent::CoordinatorConnected{});
  });
}

void Host::WatchLink(int64_t link) {
  Later(absl::Seconds(2), [this, link] {
    if (link_ != link) return;
    if (sim_.now().monotonic - heard_ < kLinkTimeout) return WatchLink(link);
    sim_.Reached("agent gave up a silent link");
    network_.CloseAtAgent(link);
    OnLinkClosed(link);
  });
}

void Host::OnMessage(int64_t link, const agent::Event& message) {
  if (!agent_up_ || link != link_) return;
  heard_ = sim_.now().monotonic;
  if (const auto* order = std::get_if<agent::StartOrdered>(&message)) CheckDevicesAreFree(*order);
  Do(message);
}

// The agent would refuse; the coordinator must not even ask.
void Host::CheckDevicesAreFree(const agent::StartOrdered& order) {
  for (const Trainers::Rank& alive : trainers_.AliveOn(index_)) {
    auto shim = disk_.shims.find({alive.generation, alive.rank});
    if (alive.generation == order.generation || shim == disk_.shims.end()) continue;
    for (const agent::RankOrder& rank : order.ranks) {
      if (rank.device != shim->second.device) continue;
      sim_.Violation(absl::StrCat("device ", rank.device, " of ", node().value(), " was given to generation ",
                                  order.generation.generation, " of ", order.generation.job.value(),
                                  " while a process of ", alive.generation.job.value(), " has it"));
    }
  }
}

void Host::OnLinkClosed(int64_t link) {
  if (!agent_up_ || link != link_) return;
  sim_.Trace(absl::StrCat("agent of ", node().value(), " has lost link ", link));
  link_ = 0;
  Do(agent::CoordinatorDisconnected{});
  Dial();
}

// Not one of its own draws is made for it, so that seeds keep their meaning.
void Host::StartStandby(int64_t number) {
  standbys_.insert(number);
  Later(absl::Milliseconds(10), [this, number] {
    if (standbys_.contains(number)) Do(agent::StandbyConnected{number});
  });
  Later(absl::Milliseconds(500), [this, number] {
    if (standbys_.contains(number)) Do(agent::StandbyReady{number, 1 << 20});
  });
}

void Host::Spawn(const agent::SpawnShim& command) {
  Key key(command.generation, command.rank);
  if (command.standby != 0) {
    sim_.Reached("rank started on a standby");
    if (standbys_.erase(command.standby) == 0) {
      sim_.Violation(absl::StrCat("standby ", command.standby, " of ", node().value(), " was taken and is not there"));
    }
  }
  Shim& shim = disk_.shims[key];
  shim = Shim{};
  shim.device = command.assignment.device;
  shim.orphan_timeout = command.start.orphan_timeout;
  shim.pid = 1000 + sim_.Pick(30000);
  // The shim is up before anything else of this host can go wrong with it; its agent hears of it a little later.
  Trainers::Outlet outlet;
  outlet.host = index_;
  outlet.device = shim.device;
  outlet.say = [this, key](contract::Message message) { HearFromTrainer(key, std::move(message)); };
  outlet.exit = [this, key](agent::ExitRecord exit) { TrainerExited(key, std::move(exit)); };
  Later(ShortDelay(sim_), [this, key] {
    if (!disk_.shims.contains(key) || !disk_.shims.at(key).alive) return;
    Do(agent::ShimConnected{key.first, key.second});
    Do(agent::ShimMessage{key.first, key.second, contract::Started{disk_.shims.at(key).pid}});
  });
  trainers_.Start({key.first, key.second}, command.assignment.world_size, command.start.trainer_config,
                  std::move(outlet));
}

void Host::SayToTrainer(const Key& key, const contract::Message& message) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  Trainers::Rank id{key.first, key.second};
  if (std::holds_alternative<contract::Yield>(message)) trainers_.Yield(id);
  if (const auto* kill = std::get_if<contract::Kill>(&message)) trainers_.Kill(id, absl::Seconds(kill->grace_seconds));
  if (const auto* reply = std::get_if<contract::CheckpointCommitReply>(&message)) {
    found->second.unanswered.erase(reply->request_id);
    trainers_.Answer(id, *reply);
  }
}

void Host::HearFromTrainer(const Key& key, contract::Message message) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  Shim& shim = found->second;
  if (std::holds_alternative<contract::Ready>(message)) shim.ready = true;
  if (const auto* commit = std::get_if<contract::CheckpointCommit>(&message)) {
    shim.unanswered[commit->request_id] = *commit;
  }
  if (!agent_up_) {
    sim_.Reached("shim kept a message for an absent agent");
    return;
  }
  Later(ShortDelay(sim_), [this, key, message = std::move(message)] {
    Do(agent::ShimMessage{key.first, key.second, message});
  });
}

void Host::TrainerExited(const Key& key, agent::ExitRecord exit) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  found->second.exit = exit;
  if (!agent_up_) {
    sim_.Reached("rank exited while the agent was away");
    return;
  }
  // Behind everything that the trainer said before.
  Later(absl::Milliseconds(6), [this, key, exit = std::move(exit)] {
    if (disk_.shims.contains(key)) Do(agent::RankExited{key.first, key.second, exit});
  });
}

// Sound machines: what the ledger does with a bad one is tested where the core is.
void Host::EndPreflight(bool interrupted) {
  sim_.Reached("pre-flight");
  Do(agent::PreflightFinished{interrupted, contract::Preflight{.passed = !interrupted}});
}

void Host::Probe(const agent::ProbeOrdered& probe) {
  agent::ProbeResult result;
  result.generation = probe.generation;
  result.dataset_digest = "digest";
  result.nonce = probe.nonce;
  std::string path = probe.checkpoint_directory + "/" + probe.nonce;
  if (probe.write) {
    if (probe.checkpoint_directory == kLocalDirectory) path = node().value() + path;
    shared_.nonces.insert(path);
    result.ok = true;
  } else {
    result.ok = shared_.nonces.contains(path);
    if (!result.ok) result.error = absl::StrCat("there is no ", path);
  }
  Do(agent::ProbeFinished{result});
}

}  // namespace llmctl::simulator
