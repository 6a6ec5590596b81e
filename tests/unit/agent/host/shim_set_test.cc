// The supervisor with real shims and real trainers (tests/unit/shim/test_trainer.cc).
//
// A World is the agent without its link: events of the shims are stepped, commands for them carried out, what
// would go to the coordinator is kept. Everything waits for a condition with a deadline.
#include "worker/agent/host/shim_set.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
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
#include "worker/agent/host/rank_log.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kDeadline = absl::Seconds(20);
const GenerationId kGeneration = {.job = JobId("j-1"), .attempt = 1, .generation = 3};

class World {
 public:
  // An agent's life: a second World on the same folder is the next.
  explicit World(const std::string& folder, const std::string& mode, const std::string& roots = "",
                 size_t ended_max = 2)
      : shims_(Options(folder, mode, roots, ended_max), [this](Event event) { events_.push_back(std::move(event)); }) {
    state.devices = {0, 1};
    EXPECT_TRUE(shims_.FindAll(Now().monotonic).ok());
    events_.push_back(AgentStarted{});
    StepAll();
  }

  void Do(Event event) {
    events_.push_back(std::move(event));
    StepAll();
  }
  void Start(std::vector<RankOrder> ranks = {{0, 0}}, std::vector<std::string> paths = {}) {
    Do(StartOrdered{.generation = kGeneration,
                    .world_size = static_cast<int>(ranks.size()),
                    .ranks = ranks,
                    .start = {.trainer_config = "{}",
                              .env = {{"FLAVOUR", "vanilla"}},
                              .paths = std::move(paths),
                              .orphan_timeout = absl::Minutes(10)}});
  }
  void Connect() {
    Do(CoordinatorConnected{});
    Do(CoordinatorWelcomed{.heartbeat_interval = absl::Hours(1)});
  }
  void SendToTrainer(contract::Message message) { shims_.Send({kGeneration, 0, std::move(message)}); }

  [[nodiscard]] bool Await(const std::function<bool()>& condition) {
    Instant end = Now() + kDeadline;
    while (!condition()) {
      Instant now = Now();
      if (end < now) return false;
      std::vector<pollfd> fds = shims_.Descriptors();
      absl::Duration wait = absl::Seconds(1);
      if (auto deadline = shims_.NextDeadline()) wait = std::min(wait, *deadline - now.monotonic);
      ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(wait) + 1)));
      for (const pollfd& fd : fds) {
        if (fd.revents != 0) shims_.Handle(fd, Now().monotonic);
      }
      shims_.Tick(Now().monotonic);
      StepAll();
    }
    return true;
  }
  bool AwaitPhase(RankPhase phase, int rank = 0) {
    return Await([&] { return At(rank) != nullptr && At(rank)->phase == phase; });
  }
  const Rank* At(int rank = 0) const {
    auto gang = state.gangs.find(kGeneration);
    if (gang == state.gangs.end() || !gang->second.ranks.contains(rank)) return nullptr;
    return &gang->second.ranks.at(rank);
  }
  template <typename T>
  std::vector<T> Sent() const {
    std::vector<T> out;
    for (const AgentMessage& message : sent) {
      if (const T* wanted = std::get_if<T>(&message)) out.push_back(*wanted);
    }
    return out;
  }
  ShimSet& shims() { return shims_; }

  State state;
  std::vector<AgentMessage> sent;
  int dialled = 0;

 private:
  static ShimSet::Options Options(const std::string& folder, const std::string& mode, const std::string& roots,
                                  size_t ended_max) {
    return {.shims = folder + "/shims",
            .ended = folder + "/ended",
            .shim_program = SHIM_PROGRAM,
            .trainer_program = folder + "/trainer-" + mode,
            .environment = {"PATH=/usr/bin:/bin", "FLAVOUR=none"},
            .roots = AllowedRoots(roots),
            .ended_max = ended_max,
            .ended_bytes_max = 1 << 20};
  }
  void StepAll() {
    while (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      for (const Command& command : Step(state, event, Now())) Execute(command);
      EXPECT_THAT(FindViolations(state), IsEmpty());
    }
  }
  void Execute(const Command& command) {
    std::visit(Overloaded{[&](const SpawnShim& c) { shims_.Spawn(c); }, [&](const SendToShim& c) { shims_.Send(c); },
                          [&](const RetireShim& c) { shims_.Retire(c); },
                          [&](const SendToCoordinator& c) { sent.push_back(c.message); },
                          [&](const DialCoordinator&) { ++dialled; }, [](const auto&) {}},
               command);
  }

  std::deque<Event> events_;
  ShimSet shims_;
};

class ShimSetTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part : {"/shims", "/ended"}) std::filesystem::create_directories(folder_ + part);
    // The test trainer takes its mode first; the agent's command line begins with "train".
    for (const char* mode : {"talk", "exit 3", "environment"}) {
      std::string path = folder_ + "/trainer-" + std::string(mode).substr(0, std::string(mode).find(' '));
      std::string script = absl::StrCat("#!/bin/sh\necho says >&2\nexec ", TEST_TRAINER, " ", mode, "\n");
      ASSERT_TRUE(WriteFileAtomically(path, script).ok());
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
  }
  void TearDown() override {
    for (const char* part : {"/shims", "/ended"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_ + part)) EndShim(entry.path().string());
    }
    std::filesystem::remove_all(folder_);
  }
  // Returns when it no longer touches its directory.
  static void EndShim(const std::string& directory) {
    UniqueFd lock(::open((directory + "/lock").c_str(), O_RDWR | O_CLOEXEC));
    if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return;
    KillShim(directory);
    ::flock(lock.get(), LOCK_EX);
  }
  static void KillShim(const std::string& directory) {
    int pid = std::atoi(ReadFile(directory + "/lock").value_or("").c_str());
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  std::string RankDirectory(int rank = 0) { return absl::StrCat(folder_, "/shims/j-1-a1-g3-r", rank); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/shim_set_test_", ::getpid());
};

TEST_F(ShimSetTest, AGangRunsIsStoppedAndReleased) {
  World world(folder_, "talk");
  world.Connect();
  world.Start({{0, 0}, {1, 1}});
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning, 0));
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning, 1));
  EXPECT_GT(world.At(1)->pid, 0);

  world.Do(StopOrdered{.generation = kGeneration, .grace = absl::Minutes(1)});

  ASSERT_TRUE(world.Await([&] { return !world.Sent<GangReleased>().empty(); }));
  EXPECT_EQ(world.At(0)->exit->signal, SIGTERM);
  EXPECT_TRUE(world.At(0)->exit->stopped_by_agent);
  EXPECT_EQ(world.At(0)->exit->log_tail, "says\n");
}

TEST_F(ShimSetTest, AfterTheReportHasArrivedOnlyTheLogIsKept) {
  World world(folder_, "exit");
  world.Connect();
  world.Start();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(world.At()->exit->exit_code, 3);
  EXPECT_FALSE(world.shims().IsLive(kGeneration, 0));

  world.Do(HeartbeatAnswered{1000});

  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/shims"));
  absl::StatusOr<std::string> log = world.shims().LogDirectory(kGeneration, 0);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(ReadRankLog(*log, "stderr", 0, 100)->data, "says\n");
  // The next agent knows nothing of it.
  EXPECT_THAT(World(folder_, "exit").state.gangs, IsEmpty());
}

TEST_F(ShimSetTest, TheNextAgentAdoptsWhatRunsAndDialsWhenItKnows) {
  pid_t pid = 0;
  {
    World first(folder_, "talk");
    first.Connect();
    first.Start();
    ASSERT_TRUE(first.AwaitPhase(RankPhase::kRunning));
    pid = static_cast<pid_t>(first.At()->pid);
  }

  World second(folder_, "talk");

  EXPECT_EQ(second.dialled, 0);
  ASSERT_TRUE(second.Await([&] { return second.dialled == 1; }));
  EXPECT_EQ(second.At()->phase, RankPhase::kRunning);
  EXPECT_EQ(second.At()->pid, pid);
  second.Connect();
  second.Do(StopOrdered{.generation = kGeneration, .grace = absl::Minutes(1)});
  EXPECT_TRUE(second.AwaitPhase(RankPhase::kExited));
}

TEST_F(ShimSetTest, ACommitThatTheLastAgentNeverAnsweredReachesTheNext) {
  {
    World first(folder_, "talk");
    first.Connect();
    first.Start();
    ASSERT_TRUE(first.AwaitPhase(RankPhase::kRunning));
    first.SendToTrainer(contract::Update{.settings_json = "commit 5"});
    ASSERT_TRUE(first.Await([&] { return first.Sent<CommitOffer>().size() == 1; }));
  }

  World second(folder_, "talk");
  ASSERT_TRUE(second.Await([&] { return second.dialled == 1; }));
  second.Connect();

  ASSERT_EQ(second.Sent<CommitOffer>().size(), 1u);
  EXPECT_EQ(second.Sent<CommitOffer>()[0].commit.step, 7);
}

TEST_F(ShimSetTest, AnExitWhileNoAgentWasThereIsFoundInItsRecord) {
  {
    World first(folder_, "talk");
    first.Connect();
    first.Start();
    ASSERT_TRUE(first.AwaitPhase(RankPhase::kRunning));
    first.SendToTrainer(contract::Yield{});
  }

  World second(folder_, "talk");

  ASSERT_TRUE(second.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(second.At()->exit->exit_code, 10);
}

TEST_F(ShimSetTest, AKilledShimIsReportedWhenItsTrainerIsGone) {
  World world(folder_, "talk");
  world.Connect();
  world.Start();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kRunning));
  pid_t trainer = static_cast<pid_t>(world.At()->pid);

  KillShim(RankDirectory());

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(world.At()->exit->signal, SIGKILL);
  EXPECT_EQ(world.At()->exit->fatal_class, "infrastructure");
  EXPECT_THAT(world.At()->exit->fatal_message, HasSubstr("shim was killed"));
  // Gone, or waiting to be reaped by whoever inherited it.
  std::string stat = ReadFile(absl::StrCat("/proc/", trainer, "/stat")).value_or(") Z");
  EXPECT_THAT(stat, HasSubstr(") Z"));
}

TEST_F(ShimSetTest, AShimThatWasNeverStartedIsAFailedStart) {
  contract::ShimConfig config = {.assignment = {.generation = kGeneration}, .argv = {"/bin/true"}};
  std::filesystem::create_directories(RankDirectory());
  ASSERT_TRUE(WriteFileAtomically(RankDirectory() + "/shim.json", contract::EncodeShimConfig(config)).ok());

  World world(folder_, "talk");

  ASSERT_NE(world.At(), nullptr);
  ASSERT_TRUE(world.At()->exit.has_value());
  EXPECT_TRUE(world.At()->exit->start_failed);
  EXPECT_EQ(world.dialled, 1);
}

TEST_F(ShimSetTest, AHalfMadeDirectoryIsRemoved) {
  std::filesystem::create_directories(RankDirectory());

  World world(folder_, "talk");

  EXPECT_THAT(world.state.gangs, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/shims"));
}

TEST_F(ShimSetTest, AForbiddenPathStartsNothingAndIsAConfigError) {
  World world(folder_, "talk", folder_ + "/allowed");
  world.Connect();

  world.Start({{0, 0}}, {folder_ + "/elsewhere"});

  ASSERT_TRUE(world.At() != nullptr && world.At()->exit.has_value());
  EXPECT_TRUE(world.At()->exit->start_failed);
  EXPECT_EQ(world.At()->exit->fatal_class, "config");
  EXPECT_THAT(world.At()->exit->fatal_message, HasSubstr("/elsewhere is not below the roots"));
  EXPECT_FALSE(std::filesystem::exists(RankDirectory()));
}

TEST_F(ShimSetTest, ATrainerThatIsNotThereIsAFailedStart) {
  World world(folder_, "missing");
  world.Connect();
  world.Start();

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));

  EXPECT_TRUE(world.At()->exit->start_failed);
  EXPECT_EQ(world.At()->exit->fatal_class, "infrastructure");
  EXPECT_THAT(world.At()->exit->fatal_message, HasSubstr("trainer-missing: No such file or directory"));
}

TEST_F(ShimSetTest, TheTrainersEnvironmentIsTheAgentsChoiceAndTheJobs) {
  World world(folder_, "environment");
  world.Connect();
  world.Start();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));

  std::string text = ReadRankLog(RankDirectory(), "stdout", 0, 10000)->data;

  EXPECT_THAT(text, HasSubstr("FLAVOUR=vanilla\n"));
  EXPECT_THAT(text, HasSubstr("PATH=/usr/bin:/bin\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("HOME=")));
}

TEST_F(ShimSetTest, OnlyTheNewestLogsAreKept) {
  for (int i = 0; i < 4; ++i) {
    std::filesystem::create_directories(absl::StrFormat("%s/ended/j-0-a1-g%d-r0", folder_, i));
  }
  World world(folder_, "exit");
  world.Connect();
  world.Start();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));

  world.Do(HeartbeatAnswered{1000});

  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/ended"), {}), 2);
  EXPECT_TRUE(world.shims().LogDirectory(kGeneration, 0).ok());
}

TEST_F(ShimSetTest, KeptLogsAreBoundedInBytesToo) {
  std::string large = folder_ + "/ended/j-0-a1-g1-r0", small = folder_ + "/ended/j-0-a1-g2-r0";
  auto now = std::filesystem::file_time_type::clock::now();
  for (const std::string& directory : {large, small}) {
    std::filesystem::create_directories(directory);
    bool is_large = directory == large;
    ASSERT_TRUE(WriteFileAtomically(directory + "/stdout.log", std::string(is_large ? 2 << 20 : 1, 'x')).ok());
    std::filesystem::last_write_time(directory, now - std::chrono::hours(is_large ? 2 : 1));
  }
  World world(folder_, "exit", "", /*ended_max=*/64);
  world.Connect();
  world.Start();
  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));

  world.Do(HeartbeatAnswered{1000});

  EXPECT_FALSE(std::filesystem::exists(large));
  EXPECT_TRUE(std::filesystem::exists(small));
  EXPECT_TRUE(world.shims().LogDirectory(kGeneration, 0).ok());
}

// A shim of a build whose contract is not ours: a process of its own that holds the lock, greets with another version,
// and ends as any shim does when it gets SIGTERM.
class ForeignShim {
 public:
  explicit ForeignShim(const std::string& directory) {
    contract::ShimConfig config = {.assignment = {.generation = kGeneration, .world_size = 1, .device = 1},
                                   .argv = {"/bin/true"}};
    std::filesystem::create_directories(directory);
    EXPECT_TRUE(WriteFileAtomically(directory + "/shim.json", contract::EncodeShimConfig(config)).ok());
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      Live(directory, ready[1]);
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~ForeignShim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  static void Live(const std::string& directory, int ready) {
    static std::string folder;
    folder = directory;
    ::signal(SIGTERM, [](int) {
      contract::Exited exited = {.signal = SIGTERM, .stopped_by_agent = true};
      (void)WriteFileAtomically(folder + "/exit.json", *contract::EncodeLine({.message = exited}) + "\n");
      ::_exit(0);
    });
    UniqueFd lock(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT, 0600));
    ::flock(lock.get(), LOCK_EX);
    ::dprintf(lock.get(), "%d\n", static_cast<int>(::getpid()));
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address = {.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, (directory + "/socket").c_str(), sizeof address.sun_path - 1);
    if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    ::listen(listener.get(), 1);
    if (::write(ready, "x", 1) != 1) return;
    while (true) {
      contract::LineLink agent(UniqueFd(::accept(listener.get(), nullptr, nullptr)));
      (void)agent.Send(contract::Hello{.version = 7, .role = "shim", .oldest_version = 6});
      (void)agent.Send(contract::Ready{.step = 1});
      ::pause();
    }
  }

  pid_t pid_ = 0;
};

TEST_F(ShimSetTest, AShimThatSpeaksAnotherVersionIsLeftAloneAndHoldsNothingUp) {
  ForeignShim shim(RankDirectory());

  World world(folder_, "talk");
  ASSERT_TRUE(world.Await([&] { return world.dialled == 1; }));

  // Not believed: what it says may mean something else.
  ASSERT_NE(world.At(), nullptr);
  EXPECT_EQ(world.At()->phase, RankPhase::kStarting);
  EXPECT_EQ(world.At()->device, 1);
}

TEST_F(ShimSetTest, AShimThatSpeaksAnotherVersionCanBeStoppedAllTheSame) {
  ForeignShim shim(RankDirectory());
  World world(folder_, "talk");
  ASSERT_TRUE(world.Await([&] { return world.dialled == 1; }));
  world.Connect();

  world.Do(StopOrdered{.generation = kGeneration, .grace = absl::Seconds(5)});

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
  EXPECT_EQ(world.At()->exit->signal, SIGTERM);
  EXPECT_TRUE(world.At()->exit->stopped_by_agent);
}

TEST_F(ShimSetTest, AShimThatSpeaksAnotherVersionCanBeKilled) {
  ForeignShim shim(RankDirectory());
  World world(folder_, "talk");
  ASSERT_TRUE(world.Await([&] { return world.dialled == 1; }));
  world.Connect();

  world.Do(StopOrdered{.generation = kGeneration, .grace = absl::ZeroDuration()});

  ASSERT_TRUE(world.AwaitPhase(RankPhase::kExited));
}

// Forgetting a rank that runs would be worse than not starting.
TEST_F(ShimSetTest, AConfigurationThatCannotBeReadOfAShimThatLivesKeepsTheAgentFromStarting) {
  std::filesystem::create_directories(RankDirectory());
  ASSERT_TRUE(WriteFileAtomically(RankDirectory() + "/shim.json", R"({"assignment": "by carrier pigeon"})").ok());
  UniqueFd lock(::open((RankDirectory() + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  ShimSet shims({.shims = folder_ + "/shims", .ended = folder_ + "/ended"}, [](Event) {});

  absl::Status status = shims.FindAll(Now().monotonic);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(RankDirectory()), HasSubstr("another build")));
  EXPECT_TRUE(std::filesystem::exists(RankDirectory() + "/shim.json"));
}

// The machine may have lost power before the file was on its disk.
TEST_F(ShimSetTest, AConfigurationThatCannotBeReadOfAShimThatIsGoneIsRemoved) {
  std::filesystem::create_directories(RankDirectory());
  ASSERT_TRUE(WriteFileAtomically(RankDirectory() + "/shim.json", "").ok());
  ShimSet shims({.shims = folder_ + "/shims", .ended = folder_ + "/ended"}, [](Event) {});

  EXPECT_TRUE(shims.FindAll(Now().monotonic).ok());

  EXPECT_FALSE(std::filesystem::exists(RankDirectory()));
}

TEST(ShimDirectoryName, IsAPlainFileName) {
  EXPECT_EQ(*ShimDirectoryName(kGeneration, 2), "j-1-a1-g3-r2");
  for (const char* job : {"", ".", "..", "a/b", "a b"}) {
    EXPECT_FALSE(ShimDirectoryName({.job = JobId(job)}, 0).ok()) << job;
  }
}

}  // namespace
}  // namespace llmctl::agent
