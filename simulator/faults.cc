#include "simulator/faults.h"

#include <utility>

#include "worker/contract/exit_codes.h"

namespace llmctl::simulator {
namespace {

// Of the agents' links and of the simulated leases.
constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kOrphanTimeout = absl::Minutes(2);
constexpr absl::Duration kHang = absl::Minutes(3);
constexpr absl::Duration kHangSeenAgain = absl::Seconds(20);
// When something is at stake, it is hit rather than another.
constexpr double kOnTheSpot = 0.8;

}  // namespace

const std::vector<Faults::Fault>& Faults::All() {
  static const std::vector<Fault> all = {
      &Faults::CrashCoordinator, &Faults::CrashCoordinatorAfterCommit, &Faults::PauseCoordinator,
      &Faults::StartSecondCoordinator, &Faults::FillDisk, &Faults::SlowDisk, &Faults::KillDiskInCommit,
      &Faults::CrashAgent, &Faults::CrashAgentInStep, &Faults::PauseAgent, &Faults::ReplaceAgent,
      &Faults::FillAgentDisk, &Faults::RebootHost, &Faults::StartNamesake, &Faults::JumpClock, &Faults::FailTrainer,
      &Faults::PauseTrainer, &Faults::WedgeTrainer, &Faults::DeafenTrainer, &Faults::HangTrainer, &Faults::KillShim,
      &Faults::KillStandby, &Faults::SpoilHost, &Faults::Partition, &Faults::CutLink, &Faults::SlowNetwork,
      &Faults::RepeatMessages};
  return all;
}

void Faults::Heal() {
  over_ = true;
  v_.network.Heal();
  v_.disk.Heal();
  if (v_.hosts.back()->has_power()) v_.hosts.back()->PowerOff({.wipe = true});
  for (size_t i = 0; i + 1 < v_.hosts.size(); ++i) v_.hosts[i]->Heal();
  Coordinator* chosen = v_.coordinators.front().get();
  for (const auto& coordinator : v_.coordinators) {
    coordinator->SpareNextCommit();
    if (coordinator->up() && coordinator->term() == v_.disk.term()) chosen = coordinator.get();
  }
  // One that was deposed has nothing to say any more, and may not have noticed.
  for (const auto& coordinator : v_.coordinators) {
    if (coordinator.get() != chosen) coordinator->Retire();
  }
  if (chosen->up() && chosen->term() != v_.disk.term()) chosen->Crash();
  chosen->Start();
}

void Faults::Lasts(absl::Duration length, std::function<void()> undo) {
  sim_.After(length, [this, undo = std::move(undo)] {
    if (!over_) undo();
  });
}

Host& Faults::AnyHost(Dice& dice, const Occasion& occasion) {
  int chosen = dice.Pick(static_cast<int>(v_.hosts.size()) - 1);
  bool on_the_spot = dice.Happens(kOnTheSpot);
  for (size_t i = 0; i + 1 < v_.hosts.size() && on_the_spot; ++i) {
    if (v_.hosts[i]->node() == occasion.node) return *v_.hosts[i];
  }
  return *v_.hosts[chosen];
}

Coordinator* Faults::AnyCoordinator(Dice& dice) {
  size_t first = dice.Pick(static_cast<int>(v_.coordinators.size()));
  for (size_t i = 0; i < v_.coordinators.size(); ++i) {
    Coordinator& coordinator = *v_.coordinators[(first + i) % v_.coordinators.size()];
    if (coordinator.up()) return &coordinator;
  }
  return nullptr;
}

const Trainers::Rank* Faults::AnyTrainer(Dice& dice, const Occasion& occasion) {
  const std::vector<Trainers::Rank>& alive = v_.trainers.Alive();
  if (alive.empty()) return nullptr;
  const Trainers::Rank* chosen = &alive[dice.Pick(static_cast<int>(alive.size()))];
  bool on_the_spot = dice.Happens(kOnTheSpot);
  for (const Trainers::Rank& rank : alive) {
    if (on_the_spot && rank.generation.job == occasion.job && dice.Happens(0.5)) return &rank;
  }
  return chosen;
}

void Faults::CrashCoordinator(Dice& dice, const Occasion&) {
  absl::Duration down =
      dice.Happens(0.1) ? absl::Seconds(150) : dice.Between(absl::Milliseconds(100), absl::Seconds(30));
  Coordinator* coordinator = AnyCoordinator(dice);
  if (coordinator == nullptr) return;
  sim_.Reached(Probe::kCoordinatorCrash);
  coordinator->Crash();
  Lasts(down, [coordinator] { coordinator->Start(); });
}

void Faults::CrashCoordinatorAfterCommit(Dice& dice, const Occasion&) {
  absl::Duration down = dice.Between(absl::Milliseconds(100), absl::Seconds(20));
  if (Coordinator* coordinator = AnyCoordinator(dice)) coordinator->CrashAfterNextCommit(down);
}

void Faults::PauseCoordinator(Dice& dice, const Occasion&) {
  absl::Duration length = dice.Between(absl::Seconds(1), absl::Seconds(30));
  Coordinator* coordinator = AnyCoordinator(dice);
  if (coordinator == nullptr) return;
  sim_.Reached(Probe::kCoordinatorPause);
  coordinator->Pause(length);
}

// The first lives, and may stand still just now.
void Faults::StartSecondCoordinator(Dice& dice, const Occasion&) {
  Coordinator* up = AnyCoordinator(dice);
  if (up == nullptr) return;
  if (dice.Happens(0.5)) up->Pause(dice.Between(absl::Seconds(1), absl::Seconds(15)));
  for (const auto& coordinator : v_.coordinators) {
    if (!coordinator->up()) return coordinator->Start();
  }
}

void Faults::FillDisk(Dice& dice, const Occasion&) {
  sim_.Reached(Probe::kDiskFull);
  v_.disk.Fill(dice.Between(absl::Seconds(1), absl::Seconds(40)));
}

void Faults::SlowDisk(Dice& dice, const Occasion&) {
  sim_.Reached(Probe::kDiskSlow);
  v_.disk.SlowDown(dice.Between(absl::Seconds(2), absl::Seconds(30)));
}

void Faults::KillDiskInCommit(Dice& dice, const Occasion&) { v_.disk.DieInCommit(dice.Pick(12)); }

void Faults::CrashAgent(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  absl::Duration down =
      dice.Happens(0.2) ? absl::Seconds(140) : dice.Between(absl::Milliseconds(50), absl::Seconds(20));
  if (!host.agent_up()) return;
  sim_.Reached(Probe::kAgentCrash);
  host.CrashAgent();
  Lasts(down, [&host] { host.StartAgent(); });
}

void Faults::CrashAgentInStep(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  int commands_left = dice.Pick(6);
  host.CrashAgentInStep(commands_left, dice.Between(absl::Milliseconds(50), absl::Seconds(20)));
}

void Faults::PauseAgent(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  absl::Duration length = dice.Between(absl::Seconds(1), absl::Seconds(25));
  absl::Duration until_another = length * dice.Between(0.0, 1.0);
  if (!host.agent_up()) return;
  sim_.Reached(Probe::kAgentPause);
  if (length > kLease) sim_.Reached(Probe::kAgentPauseBeyondLease);
  host.PauseAgent(length);
  // Whoever watches over it takes it for dead.
  if (dice.Happens(0.5)) Lasts(until_another, [&host] { host.StartAgent(); });
}

void Faults::ReplaceAgent(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  host.ReplaceAgentBehindHello(dice.Between(absl::Seconds(1), absl::Seconds(9)));
  // So that it says Hello.
  v_.network.Cut(host.index());
}

void Faults::FillAgentDisk(Dice& dice, const Occasion& occasion) {
  sim_.Reached(Probe::kAgentDiskFull);
  Host& host = AnyHost(dice, occasion);
  host.FillDisk(dice.Between(absl::Seconds(1), absl::Seconds(40)));
}

void Faults::RebootHost(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  Host::Loss loss;
  loss.wipe = dice.Happens(0.15);
  loss.records = dice.Happens(0.3);
  absl::Duration down = dice.Between(absl::Seconds(3), absl::Seconds(50));
  if (!host.has_power()) return;
  sim_.Reached(loss.wipe ? Probe::kHostWiped : Probe::kHostReboot);
  host.PowerOff(loss);
  Lasts(down, [&host] { host.PowerOn(); });
}

void Faults::StartNamesake(Dice& dice, const Occasion&) {
  Host& host = *v_.hosts.back();
  absl::Duration length = dice.Between(absl::Seconds(5), absl::Seconds(60));
  if (host.has_power()) return;
  sim_.Reached(Probe::kTwoWorkersOneName);
  host.PowerOn();
  Lasts(length, [&host] {
    if (host.has_power()) host.PowerOff({});
  });
}

void Faults::JumpClock(Dice& dice, const Occasion& occasion) {
  sim_.Reached(Probe::kClockJump);
  absl::Duration by = dice.Between(-absl::Hours(48), absl::Hours(48));
  if (!v_.clocks_jump) return;
  AnyHost(dice, occasion).JumpClock(by);
  for (const auto& coordinator : v_.coordinators) coordinator->JumpClock(by);
}

void Faults::FailTrainer(Dice& dice, const Occasion& occasion) {
  const Trainers::Rank* rank = AnyTrainer(dice, occasion);
  agent::ExitRecord exit;
  switch (dice.Pick(10)) {
    case 0: exit.exit_code = contract::kExitUser; break;
    case 1: exit.exit_code = contract::kExitOutOfMemory; break;
    case 2: exit.exit_code = contract::kExitInternal; break;
    case 3: exit.exit_code = contract::kExitYielded; break;
    case 4: exit.signal = 11; break;
    default: exit.signal = 9; break;
  }
  if (rank == nullptr) return;
  sim_.Reached(Probe::kTrainerFailure);
  v_.trainers.Fail(Trainers::Rank(*rank), exit);
}

void Faults::PauseTrainer(Dice& dice, const Occasion& occasion) {
  const Trainers::Rank* rank = AnyTrainer(dice, occasion);
  if (rank == nullptr) return;
  sim_.Reached(Probe::kTrainerPause);
  v_.trainers.Pause(*rank, dice.Between(absl::Seconds(1), absl::Seconds(60)));
}

void Faults::WedgeTrainer(Dice& dice, const Occasion& occasion) {
  const Trainers::Rank* rank = AnyTrainer(dice, occasion);
  if (rank == nullptr) return;
  sim_.Reached(Probe::kTrainerWedged);
  v_.trainers.Wedge(*rank);
}

void Faults::DeafenTrainer(Dice& dice, const Occasion& occasion) {
  const Trainers::Rank* rank = AnyTrainer(dice, occasion);
  if (rank == nullptr) return;
  sim_.Reached(Probe::kTrainerDeaf);
  v_.trainers.Deafen(*rank);
}

void Faults::HangTrainer(Dice& dice, const Occasion& occasion) {
  const Trainers::Rank* rank = AnyTrainer(dice, occasion);
  absl::Duration unseen = dice.Between(absl::Seconds(2), absl::Seconds(30));
  // A watch may be wrong: the job is only slow.
  bool slow = dice.Happens(0.2);
  if (rank == nullptr) return;
  sim_.Reached(slow ? Probe::kHangFalselySeen : Probe::kTrainerHang);
  v_.trainers.Pause(*rank, slow ? unseen + absl::Milliseconds(1) : kHang);
  sim_.After(unseen, [this, generation = rank->generation] { WatchHang(generation); });
}

void Faults::WatchHang(const GenerationId& generation) {
  if (!v_.trainers.IsStalled(generation)) return;
  for (const auto& coordinator : v_.coordinators) {
    if (!coordinator->up()) continue;
    coordinator->Notice(core::StragglerSeen{generation, "a rank makes the others wait"});
    coordinator->Notice(core::JobHung{generation, "a rank stands still"});
  }
  sim_.After(kHangSeenAgain, [this, generation] { WatchHang(generation); });
}

void Faults::KillStandby(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  if (host.has_standby()) host.KillStandby();
}

void Faults::SpoilHost(Dice& dice, const Occasion& occasion) {
  sim_.Reached(Probe::kHostUnfit);
  AnyHost(dice, occasion).Spoil();
}

void Faults::KillShim(Dice& dice, const Occasion& occasion) {
  Host& host = AnyHost(dice, occasion);
  std::vector<Trainers::Rank> alive = v_.trainers.AliveOn(host.index());
  if (alive.empty()) return;
  sim_.Reached(Probe::kShimKilled);
  host.KillShim(alive[dice.Pick(static_cast<int>(alive.size()))]);
}

void Faults::Partition(Dice& dice, const Occasion& occasion) {
  int host = AnyHost(dice, occasion).index();
  struct Kind {
    Probe probe;
    bool up, down;  // blocked
  };
  static constexpr Kind kKinds[] = {{Probe::kPartition, true, true},
                                    {Probe::kPartitionUp, true, false},
                                    {Probe::kPartitionDown, false, true}};
  const Kind& kind = kKinds[dice.Pick(3)];
  absl::Duration length = dice.Happens(0.15) ? absl::Seconds(150) : dice.Between(absl::Seconds(1), absl::Seconds(30));
  sim_.Reached(kind.probe);
  if (length > kOrphanTimeout) sim_.Reached(Probe::kPartitionBeyondOrphanTimeout);
  v_.network.Block(host, kind.up, kind.down);
  Lasts(length, [this, host] { v_.network.Unblock(host); });
}

void Faults::CutLink(Dice& dice, const Occasion& occasion) {
  sim_.Reached(Probe::kLinkCut);
  v_.network.Cut(AnyHost(dice, occasion).index());
}

void Faults::SlowNetwork(Dice& dice, const Occasion&) {
  sim_.Reached(Probe::kNetworkSlow);
  double share = dice.Between(0.1, 0.6);
  v_.network.SetSlow(share, dice.Between(absl::Seconds(1), absl::Seconds(12)));
  Lasts(dice.Between(absl::Seconds(5), absl::Seconds(40)), [this] { v_.network.SetUsualSpeed(); });
}

void Faults::RepeatMessages(Dice& dice, const Occasion&) {
  sim_.Reached(Probe::kNetworkRepeats);
  v_.network.set_repeats(dice.Between(0.05, 0.5));
  Lasts(dice.Between(absl::Seconds(10), absl::Seconds(60)), [this] { v_.network.set_repeats(0); });
}

}  // namespace llmctl::simulator
