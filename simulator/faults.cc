#include "simulator/faults.h"

#include "worker/contract/exit_codes.h"

namespace llmctl::simulator {

Faults::Faults(Simulation& sim, Network& network, Coordinator& coordinator, Trainers& trainers, Hosts& hosts)
    : sim_(sim), network_(network), coordinator_(coordinator), trainers_(trainers), hosts_(hosts) {}

void Faults::Begin() {
  const std::vector<Fault> all = {&Faults::CrashCoordinator, &Faults::CrashCoordinatorAfterCommit,
                                  &Faults::PauseCoordinator, &Faults::FillDisk,
                                  &Faults::CrashAgent,
                                  &Faults::FailTrainer,      &Faults::WedgeTrainer,
                                  &Faults::KillShim,         &Faults::RebootHost,
                                  &Faults::Partition,        &Faults::CutLink};
  double share = 0.2 + 0.8 * (sim_.Pick(100) / 100.0);
  for (Fault fault : all) {
    if (sim_.Chance(share)) chosen_.push_back(fault);
  }
  spacing_ = sim_.Chance(0.2) ? sim_.Between(absl::Milliseconds(300), absl::Seconds(3))
                              : sim_.Between(absl::Seconds(3), absl::Seconds(90));
  if (sim_.Chance(0.5)) network_.set_repeats(0.1);
  Next();
}

void Faults::Next() {
  if (over_ || chosen_.empty()) return;
  sim_.After(spacing_ * (0.1 + 1.8 * (sim_.Pick(1000) / 1000.0)), [this] {
    if (over_) return;
    (this->*chosen_[sim_.Pick(static_cast<int>(chosen_.size()))])();
    Next();
  });
}

void Faults::Heal() {
  over_ = true;
  network_.set_repeats(0);
  for (size_t i = 0; i < hosts_.size(); ++i) {
    network_.Unblock(static_cast<int>(i));
    if (!hosts_[i]->has_power()) hosts_[i]->PowerOn();
    hosts_[i]->StartAgent();
  }
  coordinator_.SpareNextCommit();
  coordinator_.FailCommits(absl::ZeroDuration());
  coordinator_.Start();
}

void Faults::CrashCoordinator() {
  if (!coordinator_.up()) return;
  sim_.Reached("coordinator crash");
  coordinator_.Crash();
  absl::Duration down = sim_.Chance(0.1) ? absl::Minutes(4) : sim_.Between(absl::Milliseconds(100), absl::Seconds(40));
  sim_.After(down, [this] { coordinator_.Start(); });
}

void Faults::CrashCoordinatorAfterCommit() {
  if (!coordinator_.up()) return;
  coordinator_.CrashAfterNextCommit(sim_.Between(absl::Milliseconds(100), absl::Seconds(30)));
}

void Faults::PauseCoordinator() {
  if (!coordinator_.up()) return;
  sim_.Reached("coordinator pause");
  coordinator_.Pause(sim_.Between(absl::Seconds(1), absl::Seconds(40)));
}

void Faults::FillDisk() { coordinator_.FailCommits(sim_.Between(absl::Seconds(1), absl::Seconds(60))); }

void Faults::CrashAgent() {
  Host& host = AnyHost();
  if (!host.agent_up()) return;
  sim_.Reached("agent crash");
  host.CrashAgent();
  absl::Duration down = sim_.Chance(0.2) ? absl::Minutes(3) : sim_.Between(absl::Milliseconds(50), absl::Seconds(20));
  sim_.After(down, [&host] { host.StartAgent(); });
}

void Faults::FailTrainer() {
  std::vector<Trainers::Rank> alive = trainers_.Alive();
  if (alive.empty()) return;
  const Trainers::Rank& rank = alive[sim_.Pick(static_cast<int>(alive.size()))];
  agent::ExitRecord exit;
  switch (sim_.Pick(10)) {
    case 0: exit.exit_code = contract::kExitUser; break;
    case 1: exit.exit_code = contract::kExitOutOfMemory; break;
    case 2: exit.exit_code = contract::kExitInternal; break;
    case 3: exit.exit_code = contract::kExitYielded; break;
    case 4: exit.signal = 11; break;
    default: exit.signal = 9; break;
  }
  sim_.Reached("trainer failure");
  trainers_.Fail(rank, exit);
}

void Faults::WedgeTrainer() {
  std::vector<Trainers::Rank> alive = trainers_.Alive();
  if (alive.empty()) return;
  sim_.Reached("trainer that does not die");
  trainers_.Wedge(alive[sim_.Pick(static_cast<int>(alive.size()))]);
}

void Faults::KillShim() {
  int host = sim_.Pick(static_cast<int>(hosts_.size()));
  std::vector<Trainers::Rank> alive = trainers_.AliveOn(host);
  if (alive.empty()) return;
  sim_.Reached("shim killed");
  hosts_[host]->KillShim(alive[sim_.Pick(static_cast<int>(alive.size()))]);
}

void Faults::RebootHost() {
  Host& host = AnyHost();
  if (!host.has_power()) return;
  bool wipe = sim_.Chance(0.15);
  sim_.Reached(wipe ? "host replaced by an empty one" : "host reboot");
  host.PowerOff(wipe);
  sim_.After(sim_.Between(absl::Seconds(3), absl::Seconds(60)), [&host] {
    if (!host.has_power()) host.PowerOn();
  });
}

void Faults::Partition() {
  int host = sim_.Pick(static_cast<int>(hosts_.size()));
  struct Kind {
    const char* name;
    bool up, down;  // blocked
  };
  const Kind kinds[] = {{"partition", true, true},
                        {"partition towards the coordinator", true, false},
                        {"partition towards the agent", false, true}};
  const Kind& kind = kinds[sim_.Pick(3)];
  sim_.Reached(kind.name);
  network_.Block(host, kind.up, kind.down);
  absl::Duration length = sim_.Chance(0.15) ? absl::Minutes(4) : sim_.Between(absl::Seconds(1), absl::Seconds(40));
  if (length > absl::Minutes(2)) sim_.Reached("partition beyond the orphan timeout");
  sim_.After(length, [this, host] { network_.Unblock(host); });
}

void Faults::CutLink() {
  sim_.Reached("link cut");
  network_.Cut(sim_.Pick(static_cast<int>(hosts_.size())));
}

}  // namespace llmctl::simulator
