// Standbys with real shims and real trainers (tests/unit/shim/test_trainer.cc), under a supervisor that decides.
//
// A World is a life of the agent without its link. Everything waits for a condition with a deadline.
#include "worker/agent/host/standby_set.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/overloaded.h"
#include "worker/agent/core/step.h"
#include "worker/agent/host/shim_set.h"

namespace llmctl::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kDeadline = absl::Seconds(20);
const GenerationId kGeneration = {.job = JobId("j-1"), .attempt = 1, .generation = 3};

class World {
 public:
  explicit World(const std::string& folder)
      : folder_(folder),
        trainer_(*TrainerProgram::Open(folder + "/trainer")),
        shims_({.shims = folder + "/shims",
                .ended = folder + "/ended",
                .shim_program = SHIM_PROGRAM,
                .trainer_program = folder + "/trainer",
                .environment = {"FLAVOUR=none", "PLAIN=1"}},
               [this](Event event) { events_.push_back(std::move(event)); }),
        standbys_({.standbys = folder + "/standby",
                   .shim_program = SHIM_PROGRAM,
                   .environment = {"FLAVOUR=none", "PLAIN=1"}},
                  trainer_, [this](Event event) { events_.push_back(std::move(event)); }) {
    state.devices = {0, 1};
    state.standbys_wanted = 1;
    EXPECT_TRUE(shims_.FindAll(Now().monotonic).ok());
    state.next_standby = standbys_.FindAll();
    events_.push_back(AgentStarted{});
    StepAll();
  }

  void Start(std::vector<RankOrder> ranks = {{0, 0}}) {
    events_.push_back(StartOrdered{.generation = kGeneration,
                                   .world_size = static_cast<int>(ranks.size()),
                                   .ranks = ranks,
                                   .start = {.trainer_config = "{\"step\": 0}",
                                             .env = {{"FLAVOUR", "vanilla"}},
                                             .orphan_timeout = absl::Minutes(10)}});
    StepAll();
  }
  void Kill() {
    events_.push_back(StopOrdered{.generation = kGeneration});
    StepAll();
  }
  [[nodiscard]] bool Await(const std::function<bool()>& condition) {
    Instant end = Now() + kDeadline;
    while (!condition()) {
      if (end < Now()) return false;
      for (int64_t timer : std::exchange(due_, {})) events_.push_back(TimerFired{timer});
      StepAll();
      std::vector<pollfd> shims = shims_.Descriptors(), standbys = standbys_.Descriptors(), all = shims;
      all.insert(all.end(), standbys.begin(), standbys.end());
      ::poll(all.data(), all.size(), 20);
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].revents == 0) continue;
        if (i < shims.size()) {
          shims_.Handle(all[i], Now().monotonic);
        } else {
          standbys_.Handle(all[i]);
        }
      }
      shims_.Tick(Now().monotonic);
      StepAll();
    }
    return true;
  }
  // The pid of the trainer that waits; 0 if none does in time.
  pid_t AwaitReady() {
    bool ready = Await([&] {
      return !state.standbys.empty() && state.standbys.begin()->second.phase == Standby::Phase::kReady;
    });
    if (!ready) return 0;
    int64_t number = state.standbys.begin()->first;
    std::string directory = absl::StrFormat("%s/standby/waiting-for-a-job-%08d", folder_, number);
    auto started = ReadRecord<contract::Started>(directory + "/started.json");
    return started.has_value() ? static_cast<pid_t>(started->pid) : 0;
  }
  bool AwaitPhase(RankPhase phase, int rank = 0) {
    return Await([&] { return At(rank) != nullptr && At(rank)->phase == phase; });
  }
  const Rank* At(int rank = 0) const {
    auto gang = state.gangs.find(kGeneration);
    if (gang == state.gangs.end() || !gang->second.ranks.contains(rank)) return nullptr;
    return &gang->second.ranks.at(rank);
  }
  void EndAll() { standbys_.EndAll(); }
  // As an agent does that finds its trainer replaced.
  void LookAtTrainer() {
    ASSERT_TRUE(trainer_.Look().ok());
    standbys_.EndAll();
  }

  State state;

 private:
  void StepAll() {
    while (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      for (const Command& command : Step(state, event, Now())) Execute(command);
      EXPECT_THAT(FindViolations(state), IsEmpty());
    }
  }
  void Execute(const Command& command) {
    std::visit(Overloaded{[&](const SpawnShim& c) {
                            absl::StatusOr<StandbySet::Taken> standby = standbys_.Take(c.standby);
                            if (standby.ok()) return shims_.Spawn(c, *std::move(standby));
                            shims_.Spawn(c);
                          },
                          [&](const SendToShim& c) { shims_.Send(c); },
                          [&](const StartStandby& c) { standbys_.Start(c.number); },
                          [&](const EndStandby& c) { standbys_.End(c.number); },
                          [&](const ArmTimer& c) {
                            // Whatever the delay: Await() fires it.
                            if (state.timers.at(c.timer).purpose == Timer::Purpose::kStandby) due_.push_back(c.timer);
                          },
                          [](const auto&) {}},
               command);
  }

  const std::string folder_;
  std::deque<Event> events_;
  std::vector<int64_t> due_;
  TrainerProgram trainer_;
  ShimSet shims_;
  StandbySet standbys_;
};

class StandbySetTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part : {"/shims", "/standby", "/ended"}) std::filesystem::create_directories(folder_ + part);
    WriteTrainer("standby");
  }
  void TearDown() override {
    for (const char* part : {"/shims", "/standby"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_ + part)) {
        std::string lock = entry.path().string() + "/lock";
        UniqueFd file(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
        if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) continue;
        ::kill(std::atoi(ReadFile(lock).value_or("").c_str()), SIGKILL);
        ::flock(file.get(), LOCK_EX);
      }
    }
    std::filesystem::remove_all(folder_);
  }
  // The test trainer takes its mode first; the agent's command line begins with "standby" or "train".
  void WriteTrainer(const std::string& mode) {
    std::string script = absl::StrCat("#!/bin/sh\nexec ", TEST_TRAINER, " ", mode, "\n");
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/trainer", script).ok());
    std::filesystem::permissions(folder_ + "/trainer", std::filesystem::perms::owner_all);
  }
  static bool AwaitEnd(pid_t pid) {
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid()) return true;
    pollfd one = {process.get(), POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(kDeadline))) == 1;
  }
  int StandbysLeft() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_ + "/standby"), {}));
  }
  // Programs that this process has started, that have returned, and that it has not waited for.
  static bool HasZombies() {
    siginfo_t ended = {};
    return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/standby_set_test_", ::getpid());
};

TEST_F(StandbySetTest, ARankIsTheProcessThatWaitedAndHasTheRanksDirectory) {
  World world(folder_);
  pid_t waiting = world.AwaitReady();
  ASSERT_GT(waiting, 0);
  EXPECT_GT(world.state.standbys.begin()->second.memory_bytes, 0);

  world.Start();

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning));
  EXPECT_EQ(world.At()->pid, waiting);
  EXPECT_THAT(ReadFile(folder_ + "/shims/j-1-a1-g3-r0/shim.json").value(), HasSubstr("\"FLAVOUR=vanilla\""));
  EXPECT_EQ(ReadFile(folder_ + "/shims/j-1-a1-g3-r0/trainer.json").value(), "{\"step\": 0}");
  world.Kill();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(world.At()->exit->signal, SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/shims/j-1-a1-g3-r0/exit.json"));
  EXPECT_GT(world.AwaitReady(), 0) << "another takes its place";
}

TEST_F(StandbySetTest, AGangTakesWhatThereIsAndStartsTheRestAfresh) {
  World world(folder_);
  pid_t waiting = world.AwaitReady();
  WriteTrainer("talk");

  world.Start({{0, 0}, {1, 1}});

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning, 0));
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning, 1));
  EXPECT_EQ(world.At(0)->pid, waiting);
  EXPECT_NE(world.At(1)->pid, waiting);
}

TEST_F(StandbySetTest, OneThatIsKilledIsReplacedAndTheDirectoryIsGone) {
  World world(folder_);
  pid_t first = world.AwaitReady();
  int64_t number = world.state.standbys.begin()->first;

  ::kill(first, SIGKILL);

  ASSERT_TRUE(world.Await([&] { return !world.state.standbys.contains(number); }));
  EXPECT_EQ(StandbysLeft(), 0);
  pid_t second = world.AwaitReady();
  EXPECT_GT(second, 0);
  EXPECT_NE(second, first);
}

TEST_F(StandbySetTest, OneThatDiesWhenItIsTakenIsARankThatEnded) {
  World world(folder_);
  pid_t waiting = world.AwaitReady();

  ::kill(waiting, SIGKILL);
  ASSERT_TRUE(AwaitEnd(waiting));
  world.Start();

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(world.At()->exit->signal, SIGKILL);
}

TEST_F(StandbySetTest, TheNextAgentTakesOverOneOfItsOwnBuild) {
  pid_t waiting = 0;
  {
    World first(folder_);
    waiting = first.AwaitReady();
  }

  World second(folder_);

  EXPECT_EQ(second.AwaitReady(), waiting);
  second.Start();
  ASSERT_TRUE(second.AwaitPhase(RankPhase::kRunning));
  EXPECT_EQ(second.At()->pid, waiting);
}

TEST_F(StandbySetTest, TheNextAgentEndsOneOfAnotherBuildAndStartsItsOwn) {
  pid_t waiting = 0;
  {
    World first(folder_);
    waiting = first.AwaitReady();
  }

  WriteTrainer("standby # build 2");
  World second(folder_);

  pid_t own = second.AwaitReady();
  EXPECT_GT(own, 0);
  EXPECT_NE(own, waiting);
  EXPECT_TRUE(AwaitEnd(waiting));
  // Each has its own number and directory, so that the end of the one is not taken for the other's.
  EXPECT_EQ(second.state.standby_failures, 0);
  EXPECT_TRUE(second.Await([&] { return StandbysLeft() == 1; }));
  EXPECT_EQ(second.AwaitReady(), own);
  EXPECT_FALSE(HasZombies());
}

TEST_F(StandbySetTest, OnesOfAReplacedTrainerMakeWayForNewOnes) {
  World world(folder_);
  pid_t waiting = world.AwaitReady();
  WriteTrainer("talk");

  world.LookAtTrainer();
  world.Start();

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning));
  EXPECT_NE(world.At()->pid, waiting);
  EXPECT_TRUE(AwaitEnd(waiting));
  WriteTrainer("standby # build 2");
  EXPECT_GT(world.AwaitReady(), 0);
}

TEST_F(StandbySetTest, ARankWhoseStandbyWasNotToldSoHearsItFromTheNextAgent) {
  pid_t waiting = 0;
  {
    World first(folder_);
    waiting = first.AwaitReady();
  }
  // As an agent leaves it that dies between giving the directory the rank's name and saying so.
  std::string standby = std::filesystem::directory_iterator(folder_ + "/standby")->path().string();
  contract::ShimConfig config = {.assignment = {.generation = kGeneration, .world_size = 1},
                                 .argv = {folder_ + "/trainer", "train"},
                                 .orphan_timeout_seconds = 600,
                                 .log_bytes_max = 1 << 20};
  ASSERT_TRUE(WriteFileAtomically(standby + "/shim.json", contract::EncodeShimConfig(config)).ok());
  std::filesystem::rename(standby, folder_ + "/shims/j-1-a1-g3-r0");

  World second(folder_);

  ASSERT_TRUE(second.AwaitPhase(RankPhase::kRunning));
  EXPECT_EQ(second.At()->pid, waiting);
}

TEST_F(StandbySetTest, AnAgentThatStopsLeavesNoneBehind) {
  World world(folder_);
  pid_t waiting = world.AwaitReady();

  world.EndAll();

  EXPECT_TRUE(AwaitEnd(waiting));
}

TEST_F(StandbySetTest, AProgramThatCannotWaitIsTriedAgainAndCostsNoStart) {
  WriteTrainer("exit 3");
  World world(folder_);
  ASSERT_TRUE(world.Await([&] { return world.state.standby_failures >= 2; }));
  WriteTrainer("talk");

  world.Start();

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning));
}

TEST_F(StandbySetTest, WhatAnEarlierAgentLeftWithoutAShimIsRemoved) {
  std::filesystem::create_directories(folder_ + "/standby/waiting-for-a-job-00000007");
  World world(folder_);

  EXPECT_FALSE(std::filesystem::exists(folder_ + "/standby/waiting-for-a-job-00000007"));
  EXPECT_GT(world.AwaitReady(), 0);
}

}  // namespace
}  // namespace llmctl::agent
