// The agent's process on a host: what worker/agent does around the agent core.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "simulator/host.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kLinkTimeout = absl::Seconds(10);
constexpr int kStandbysWanted = 1;
constexpr absl::Duration kRestart = absl::Milliseconds(50);

absl::Duration ShortDelay(Simulation& sim) {
  return sim.dice().Between(absl::Microseconds(100), absl::Milliseconds(5));
}

}  // namespace

Host::Agent* Host::Find(int64_t life) {
  auto found = agents_.find(life);
  return found == agents_.end() ? nullptr : &found->second;
}

const agent::State* Host::agent() const { return agents_.empty() ? nullptr : &agents_.rbegin()->second.state; }

Node Host::Describe(const Agent& agent) const {
  Node node;
  node.id = node_;
  node.boot_id = absl::StrCat("boot-", index_, "-", boot_);
  node.incarnation = agent.incarnation;
  node.trainer_digest = "trainer";
  for (int i = 0; i < devices_; ++i) node.devices.push_back({.index = i, .kind = "cpu"});
  return node;
}

void Host::Do(int64_t life, const agent::Event& event) {
  Agent* agent = Find(life);
  if (agent == nullptr) return;
  std::vector<agent::Command> commands = agent::Step(agent->state, event, clock_.At(sim_.now()));
  // Before it dials it does not know yet which of the shims that it found are alive.
  if (agent->state.dialled) {
    for (const std::string& broken : agent::FindViolations(agent->state)) {
      sim_.Violation(absl::StrCat("agent of ", node_.value(), ": ", broken));
    }
  }
  agent->fences_lost = false;
  for (agent::Command& command : commands) {
    if (crash_in_step_.has_value() && crash_in_step_->first-- <= 0) {
      absl::Duration down = crash_in_step_->second;
      sim_.Reached(Probe::kAgentCrashInStep);
      CrashAgent();
      sim_.After(down, [this] { StartAgent(); });
      return;
    }
    Execute(*agent, command);
    // What it was told to do may have ended it.
    if (Find(life) == nullptr) return;
  }
}

void Host::StartAgent() {
  if (!has_power_) return;
  if (!agents_.empty()) {
    if (!agents_.rbegin()->second.standing_still) return;
    if (!sim_.Is(Mutant::kAdoptTwice)) {
      sim_.Reached(Probe::kSecondAgentRefused);
      return;
    }
  }
  BeginAgent();
}

void Host::BeginAgent() {
  int64_t life = ++lives_;
  ++disk_.incarnation;
  Agent& agent = agents_[life];
  agent.life = life;
  agent.incarnation = disk_.incarnation;
  agent.state.fences = disk_.fences;
  if (!sim_.Is(Mutant::kDropOutbox)) agent.state.outbox = disk_.outbox;
  for (int i = 0; i < devices_; ++i) agent.state.devices.insert(i);
  agent.state.standbys_wanted = kStandbysWanted;
  sim_.Trace({'a', index_, disk_.incarnation}, [&] {
    return absl::StrCat("agent of ", node_.value(), " (host ", index_, ") starts, incarnation ", disk_.incarnation);
  });
  std::vector<Key> keys;
  for (const auto& [key, shim] : disk_.shims) {
    keys.push_back(key);
    sim_.Reached(Probe::kShimAdopted);
    Do(life, agent::ShimFound{key.first, key.second, shim.device, shim.orphan_timeout});
  }
  FindStandbys(life);
  Do(life, agent::AgentStarted{});
  for (const Key& key : keys) {
    Later(life, ShortDelay(sim_), [this, life, key] { TellEverything(life, key); });
  }
}

void Host::TellEverything(int64_t life, const Key& key) {
  auto found = disk_.shims.find(key);
  if (found == disk_.shims.end()) return;
  const Shim shim = found->second;
  if (!shim.alive) {
    Do(life, agent::RankExited{key.first, key.second, *shim.exit});
    return;
  }
  Greet(life, key);
  auto tell = [&](contract::Message message) {
    Do(life, agent::ShimMessage{key.first, key.second, std::move(message)});
  };
  tell(contract::Started{shim.pid});
  if (shim.ready) tell(contract::Ready{});
  for (const auto& [id, request] : shim.store_requests) tell(request);
  for (const auto& [id, commit] : shim.commits) tell(commit);
  if (shim.exit.has_value()) {
    Do(life, agent::RankExited{key.first, key.second, *shim.exit});
  } else {
    tell(contract::CaughtUp{});
  }
}

void Host::EndAgent(int64_t life) {
  auto found = agents_.find(life);
  if (found == agents_.end()) return;
  sim_.Trace({'x', index_, life}, [&] { return absl::StrCat("agent of ", node_.value(), " ends"); });
  int64_t link = found->second.link;
  agents_.erase(found);
  if (link != 0) network_.CloseAtAgent(link);
}

void Host::CrashAgent() {
  crash_in_step_.reset();
  while (!agents_.empty()) EndAgent(agents_.begin()->first);
}

void Host::CrashAgentInStep(int commands_left, absl::Duration down) { crash_in_step_ = {commands_left, down}; }

void Host::PauseAgent(absl::Duration length) {
  if (agents_.empty() || agents_.rbegin()->second.standing_still) return;
  Agent& agent = agents_.rbegin()->second;
  sim_.Trace({'z', index_}, [&] {
    return absl::StrCat("agent of ", node_.value(), " stands still for ", absl::FormatDuration(length));
  });
  agent.standing_still = true;
  sim_.After(length, [this, life = agent.life] { WakeAgent(life); });
}

void Host::WakeAgent(int64_t life) {
  Agent* agent = Find(life);
  if (agent == nullptr) return;
  agent->standing_still = false;
  // It reads what has come before it looks at the time.
  if (std::exchange(agent->heard_meanwhile, false)) agent->heard = sim_.now();
  std::vector<Simulation::Action> stalled = std::exchange(agent->stalled, {});
  for (Simulation::Action& action : stalled) {
    if (Find(life) != nullptr) action();
  }
}

void Host::PersistFences(Agent& agent) {
  if (sim_.now() < disk_full_until_) {
    sim_.Reached(Probe::kFenceNotWritten);
    agent.fences_lost = true;
    return;
  }
  disk_.fences = agent.state.fences;
  for (const auto& [job, fence] : disk_.fences) {
    int64_t& known = fenced_[job];
    known = std::max(known, fence);
  }
}

void Host::PersistOutbox(const Agent& agent) {
  if (sim_.now() < disk_full_until_) {
    // Kept in memory and sent all the same; only a crash now would lose it.
    sim_.Reached(Probe::kOutboxNotWritten);
    return;
  }
  disk_.outbox = agent.state.outbox;
  for (const auto& [key, commit] : disk_.outbox) offers_.insert(key);
}

// What was written into the outbox leaves it by an answer only.
void Host::CheckOutbox(const Agent& agent) {
  for (const auto& offer : offers_) {
    if (agent.state.outbox.contains(offer)) continue;
    sim_.Violation(absl::StrCat("agent of ", node_.value(), " has forgotten a checkpoint that generation ",
                                offer.first.generation, " of ", offer.first.job.value(), " offered"));
    return;
  }
}

void Host::Execute(Agent& agent, agent::Command& command) {
  int64_t life = agent.life;
  std::visit(
      Overloaded{
          [&](const agent::PersistFences&) { PersistFences(agent); },
          [&](const agent::PersistOutbox&) { PersistOutbox(agent); },
          [&](const agent::SpawnShim& c) {
            if (!agent.fences_lost) return Spawn(life, c);
            agent::ExitRecord exit{.fatal_class = "infrastructure",
                                   .fatal_message = "this host cannot write to its state directory",
                                   .start_failed = true};
            Later(life, absl::ZeroDuration(), [this, life, c, exit] {
              Do(life, agent::RankExited{c.generation, c.rank, exit});
            });
          },
          [&](agent::SendToShim& c) {
            Later(life, ShortDelay(sim_), [this, life, c = std::move(c)] {
              SayToTrainer(life, {c.generation, c.rank}, c.message);
            });
          },
          [&](const agent::RetireShim& c) { Retire(c); },
          [&](const agent::StartStandby& c) { StartStandby(life, c.number); },
          [&](const agent::EndStandby& c) { standbys_.erase(c.number); },
          [&](const agent::DialCoordinator&) { Dial(life); },
          [&](agent::SendToCoordinator& c) {
            if (const auto* released = std::get_if<agent::GangReleased>(&c.message)) {
              released_.insert(released->generation);
            }
            const auto* update = std::get_if<agent::RankUpdate>(&c.message);
            if (update != nullptr && update->exit.has_value() && update->exit->fatal_class == "orphaned") {
              sim_.Reached(Probe::kOrphansStopped);
            }
            network_.ToCoordinator(agent.link, std::move(c.message));
          },
          [&](const agent::RunProbe& c) {
            Later(life, sim_.dice().Between(absl::Milliseconds(1), absl::Milliseconds(50)),
                  [this, life, c] { Probe(life, c.probe); });
          },
          [&](const agent::RemoveProbe& c) { shared_.nonces.erase(c.checkpoint_directory + "/" + c.nonce); },
          [&](const agent::RunPreflight&) { RunPreflight(agent); },
          [&](const agent::CancelPreflight&) { CancelPreflight(agent); },
          [&](const agent::ArmTimer& c) {
            Later(life, c.delay, [this, life, timer = c.timer] { Do(life, agent::TimerFired{timer}); });
          },
          [&](const agent::CollectEvidence&) { sim_.Reached(Probe::kEvidenceCollected); },
      },
      command);
}

void Host::Retire(const agent::RetireShim& command) {
  surroundings_.on_retired(command.generation, command.rank);
  disk_.shims.erase({command.generation, command.rank});
}

void Host::Dial(int64_t life) {
  Later(life, sim_.dice().Between(absl::Milliseconds(100), absl::Seconds(2)), [this, life] {
    Agent& agent = *Find(life);
    if (agent.link != 0) return;
    int coordinator = surroundings_.coordinator();
    if (coordinator < 0 || !network_.Reachable(index_)) return Dial(life);
    agent.link = network_.Open({index_, life, coordinator, Describe(agent)});
    agent.heard = sim_.now();
    sim_.Trace({'l', agent.link}, [&] {
      return absl::StrCat("agent of ", node_.value(), " opens link ", agent.link, " to coordinator ", coordinator);
    });
    WatchLink(life, agent.link, kLinkTimeout);
    if (hello_takes_ > absl::ZeroDuration()) HoldHello(agent);
    CheckOutbox(agent);
    Do(life, agent::CoordinatorConnected{});
  });
}

void Host::HoldHello(const Agent& agent) {
  absl::Duration takes = std::exchange(hello_takes_, absl::ZeroDuration());
  sim_.Reached(Probe::kAgentReplacedBehindHello);
  network_.Hold(agent.link, takes);
  Later(agent.life, takes / 4, [this] {
    CrashAgent();
    sim_.After(kRestart, [this] { StartAgent(); });
  });
}

void Host::WatchLink(int64_t life, int64_t link, absl::Duration length) {
  Later(life, length, [this, life, link] {
    Agent& agent = *Find(life);
    if (agent.link != link) return;
    absl::Duration silent = sim_.now() - agent.heard;
    if (silent < kLinkTimeout) return WatchLink(life, link, kLinkTimeout - silent);
    sim_.Reached(Probe::kAgentGaveUpLink);
    network_.CloseAtAgent(link);
    LoseLink(agent);
  });
}

void Host::LoseLink(Agent& agent) {
  sim_.Trace({'o', agent.link},
             [&] { return absl::StrCat("agent of ", node_.value(), " has lost link ", agent.link); });
  agent.link = 0;
  int64_t life = agent.life;
  Do(life, agent::CoordinatorDisconnected{});
  if (Find(life) != nullptr) Dial(life);
}

// Before the order is carried out.
void Host::SpoilOrder(Agent& agent, const agent::Event& message) {
  const auto* start = std::get_if<agent::StartOrdered>(&message);
  if (start != nullptr && sim_.Is(Mutant::kNoFencing)) agent.state.fences.erase(start->generation.job);
}

void Host::OnMessage(int64_t link, const Network::Ends& ends, const agent::Event& message) {
  Agent* agent = Find(ends.agent);
  if (agent == nullptr || agent->link != link) return;
  if (agent->standing_still) agent->heard_meanwhile = true;
  int64_t life = ends.agent;
  auto take = [this, life, link](const agent::Event& m) {
    Agent& awake = *Find(life);
    if (awake.link != link) return;
    awake.heard = sim_.now();
    if (const auto* order = std::get_if<agent::StartOrdered>(&m)) CheckDevicesAreFree(*order);
    if (const auto* answer = std::get_if<agent::CommitAnswered>(&m)) {
      offers_.erase({answer->generation, answer->reply.request_id});
    }
    SpoilOrder(awake, m);
    Do(life, m);
  };
  if (agent->standing_still) {
    agent->stalled.push_back([take, message] { take(message); });
  } else {
    take(message);
  }
}

void Host::OnLinkClosed(int64_t link, const Network::Ends& ends) {
  Agent* agent = Find(ends.agent);
  if (agent == nullptr || agent->link != link) return;
  WhenAwake(*agent, [this, life = ends.agent, link] {
    Agent& awake = *Find(life);
    if (awake.link == link) LoseLink(awake);
  });
}

void Host::Probe(int64_t life, const agent::ProbeOrdered& probe) {
  agent::ProbeResult result;
  result.generation = probe.generation;
  result.dataset_digest = "digest";
  result.nonce = probe.nonce;
  std::string path = probe.checkpoint_directory + "/" + probe.nonce;
  if (probe.write) {
    if (probe.checkpoint_directory == kLocalDirectory) path = node_.value() + path;
    shared_.nonces.insert(path);
    result.ok = true;
  } else {
    result.ok = shared_.nonces.contains(path);
    if (!result.ok) result.error = absl::StrCat("there is no ", path);
  }
  Do(life, agent::ProbeFinished{result});
}

}  // namespace llmctl::simulator
