// The shim as a program, with real trainers (test_trainer.cc) and agents that come and go.
//
// Everything waits for a message, a process's end or a file's content with a deadline; nothing waits for time.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/unique_fd.h"
#include "worker/contract/line_link.h"
#include "worker/contract/picture.h"
#include "worker/contract/shim_config.h"

namespace llmctl::contract {
namespace {

using testing::HasSubstr;

constexpr int kDeadlineMs = 20000;

// Ends with `pid`; false at the deadline. A process that is gone already has ended.
bool AwaitEnd(pid_t pid) {
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return true;
  pollfd fd = {process.get(), POLLIN, 0};
  return ::poll(&fd, 1, kDeadlineMs) == 1;
}

// Until /proc shows the state of the main thread; false at the deadline.
bool AwaitState(pid_t pid, char state) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
  while (std::chrono::steady_clock::now() < end) {
    std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
    size_t at = stat.rfind(") ");
    if (at != std::string::npos && stat[at + 2] == state) return true;
    std::this_thread::yield();
  }
  return false;
}

// One connection of an agent.
class Agent {
 public:
  explicit Agent(const std::string& directory) {
    UniqueFd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY));
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {.sun_family = AF_UNIX};
    std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", kShimSocketFile);
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    link_ = std::make_unique<LineLink>(std::move(socket));
    Send(Hello{.role = "agent"});
  }

  bool connected() const { return link_ != nullptr; }
  void Send(const Message& message) { EXPECT_TRUE(link_->Send(message).ok()); }

  void SendRaw(const std::string& bytes) {
    EXPECT_EQ(::send(link_->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  // The next message of type T that has not been looked at; other messages before it are skipped.
  template <typename T>
  std::optional<T> Await() {
    while (true) {
      for (; next_ < received_.size(); ++next_) {
        if (const T* wanted = std::get_if<T>(&received_[next_])) {
          ++next_;
          return *wanted;
        }
      }
      if (!ReceiveMore()) return std::nullopt;
    }
  }
  std::optional<Message> AwaitAny() {
    while (next_ == received_.size()) {
      if (!ReceiveMore()) return std::nullopt;
    }
    return received_[next_++];
  }
  // All that is said until CaughtUp.
  std::vector<Message> AwaitCatchUp() {
    size_t begin = next_;
    EXPECT_TRUE(Await<CaughtUp>().has_value());
    return std::vector<Message>(received_.begin() + begin, received_.begin() + next_);
  }
  bool AwaitClose() {
    while (ReceiveMore()) {
    }
    return closed_;
  }

 private:
  bool ReceiveMore() {
    if (link_ == nullptr || closed_) return false;
    pollfd fd = {link_->fd(), POLLIN, 0};
    if (::poll(&fd, 1, kDeadlineMs) != 1) return false;
    closed_ = !link_->Receive(received_).ok();
    return true;
  }

  std::unique_ptr<LineLink> link_;
  std::vector<Message> received_;
  size_t next_ = 0;
  bool closed_ = false;
};

template <typename T>
std::vector<T> Only(const std::vector<Message>& messages) {
  std::vector<T> out;
  for (const Message& message : messages) {
    if (const T* wanted = std::get_if<T>(&message)) out.push_back(*wanted);
  }
  return out;
}

class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    // Longer than a socket address holds: the shim and its agents must not care.
    directory_ = absl::StrCat(testing::TempDir(), "/shim_test_", ::getpid(), "_", std::string(100, 'd'), "/",
                              testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
    config_ = {.assignment = {.generation = {.job = JobId("j-1"), .attempt = 1, .generation = 2},
                              .rank = 3,
                              .world_size = 4},
               .environment = {"FLAVOUR=vanilla"},
               .orphan_timeout_seconds = 600,
               .log_bytes_max = 1 << 20};
  }
  void TearDown() override {
    UniqueFd lock = OpenLock();
    bool alive = lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
    // 0 would be our own process group.
    if (pid_t pid = ShimPid(); alive && pid > 0) ::kill(pid, SIGKILL);
    std::filesystem::remove_all(std::filesystem::path(directory_).parent_path());
  }

  // Exit code of the starting process.
  int Run(std::vector<std::string> arguments) {
    config_.argv = {TEST_TRAINER};
    config_.argv.insert(config_.argv.end(), arguments.begin(), arguments.end());
    EXPECT_TRUE(WriteFileAtomically(directory_ + "/shim.json", EncodeShimConfig(config_)).ok());
    return RunAsConfigured();
  }
  int RunAsConfigured() {
    std::string flag = "--dir=" + directory_;
    std::string log = directory_ + "/" + kShimLogFile;
    char program[] = SHIM_PROGRAM;
    char* argv[] = {program, flag.data(), nullptr};
    char* environment[] = {nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int fd = 0; fd < 3 && without_streams_; ++fd) posix_spawn_file_actions_addclose(&actions, fd);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, program, &actions, nullptr, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  }
  // A trainer that waits; the shim.json of a later rank is not there yet.
  void RunStandby() {
    StandbyConfig standby = {.argv = {TEST_TRAINER, "standby"},
                             .environment = {"FLAVOUR=none"},
                             .orphan_timeout_seconds = config_.orphan_timeout_seconds,
                             .log_bytes_max = 1 << 20};
    EXPECT_TRUE(WriteFileAtomically(directory_ + "/standby.json", EncodeStandbyConfig(standby)).ok());
    EXPECT_EQ(RunAsConfigured(), 0);
  }
  void WriteRank() {
    config_.argv = {TEST_TRAINER, "talk"};
    EXPECT_TRUE(WriteFileAtomically(directory_ + "/shim.json", EncodeShimConfig(config_)).ok());
  }
  Agent Connect() {
    Agent agent(directory_);
    EXPECT_TRUE(agent.connected());
    return agent;
  }
  UniqueFd OpenLock() { return UniqueFd(::open((directory_ + "/lock").c_str(), O_RDWR | O_CLOEXEC)); }
  // Of a shim that has spoken.
  pid_t ShimPid() { return std::atoi(Read("lock").c_str()); }
  // A shim holds its lock as long as it lives. (If it lives on, the test's time limit ends the wait.)
  void AwaitShimEnd() { ASSERT_EQ(::flock(OpenLock().get(), LOCK_EX), 0); }
  // The record on disk: a shim that nobody asks ends by itself.
  Exited AwaitExitFile() {
    AwaitShimEnd();
    return std::get<Exited>(DecodeLine(absl::StripSuffix(*ReadFile(directory_ + "/exit.json"), "\n"))->message);
  }
  std::string Read(const std::string& name) { return ReadFile(directory_ + "/" + name).value_or(""); }

  std::string directory_;
  ShimConfig config_;
  bool without_streams_ = false;  // start the shim with descriptors 0, 1 and 2 closed
};

TEST_F(ShimTest, RecordsTheExitCodeOnDiskAndTellsIt) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  EXPECT_GT(agent.Await<Started>()->pid, 0);

  agent.Send(Yield{});

  std::optional<Exited> exited = agent.Await<Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->exit_code, 10);
  EXPECT_EQ(exited->signal, 0);
  EXPECT_FALSE(exited->stopped_by_agent);
  // On disk before it was told.
  EXPECT_THAT(Read("exit.json"), HasSubstr("\"exit_code\":10"));
}

TEST_F(ShimTest, RecordsTheSignal) {
  ASSERT_EQ(Run({"signal", std::to_string(SIGKILL)}), 0);

  EXPECT_EQ(AwaitExitFile().signal, SIGKILL);
}

TEST_F(ShimTest, EndsByItselfOnceTheRecordIsOnDiskAndNobodyIsThere) {
  ASSERT_EQ(Run({"talk"}), 0);
  {
    Agent agent = Connect();
    agent.Send(Yield{});
    ASSERT_TRUE(agent.Await<Exited>().has_value());
  }

  AwaitShimEnd();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/socket"));
}

TEST_F(ShimTest, ReleaseEndsIt) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  // Before the trainer's end a release means nothing.
  agent.Send(Release{});
  agent.Send(Yield{});
  ASSERT_TRUE(agent.Await<Exited>().has_value());

  agent.Send(Release{});

  EXPECT_TRUE(agent.AwaitClose());
  AwaitShimEnd();
}

TEST_F(ShimTest, AProgramThatCannotBeStartedIsRecordedWithTheReason) {
  config_.argv = {"/no/such/trainer"};
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/shim.json", EncodeShimConfig(config_)).ok());
  ASSERT_EQ(RunAsConfigured(), 0);

  Exited exited = AwaitExitFile();

  EXPECT_TRUE(exited.start_failed);
  EXPECT_EQ(exited.error, "start /no/such/trainer: No such file or directory");
}

TEST_F(ShimTest, KillWithGraceIsATermSignal) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  agent.Send(Kill{.grace_seconds = 600});

  std::optional<Exited> exited = agent.Await<Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->signal, SIGTERM);
  EXPECT_TRUE(exited->stopped_by_agent);
}

TEST_F(ShimTest, ATrainerThatIgnoresTheTermSignalIsKilledAfterTheGrace) {
  ASSERT_EQ(Run({"stubborn"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  agent.Send(Kill{.grace_seconds = 0.05});

  EXPECT_EQ(agent.Await<Exited>()->signal, SIGKILL);
}

TEST_F(ShimTest, ALaterKillMayShortenTheGraceButNotProlongIt) {
  ASSERT_EQ(Run({"stubborn"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  agent.Send(Kill{.grace_seconds = 600});
  agent.Send(Kill{.grace_seconds = 0.05});
  agent.Send(Kill{.grace_seconds = 600});

  EXPECT_EQ(agent.Await<Exited>()->signal, SIGKILL);
}

TEST_F(ShimTest, KillWithoutGraceNeedsNoCooperation) {
  ASSERT_EQ(Run({"stubborn"}), 0);
  Agent agent = Connect();

  agent.Send(Kill{.grace_seconds = 0});

  EXPECT_EQ(agent.Await<Exited>()->signal, SIGKILL);
}

TEST_F(ShimTest, APictureIsOnDiskBeforeTheOrderThatFollowsIt) {
  ASSERT_EQ(Run({"stubborn"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  agent.Send(TakePicture{"part of the gang has failed"});
  agent.Send(Kill{.grace_seconds = 0});

  ASSERT_TRUE(agent.Await<Exited>().has_value());
  absl::StatusOr<Picture> picture = DecodePicture(Read(kPictureFile));
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->reason, "part of the gang has failed");
  ASSERT_FALSE(picture->threads.empty());
  EXPECT_GT(picture->threads[0].stack.size(), 64u);
}

TEST_F(ShimTest, ATrainerThatIsKilledWhileItsPictureIsStillWaitedForIsRecorded) {
  ASSERT_EQ(Run({"in-kernel"}), 0);
  Agent agent = Connect();
  pid_t trainer = static_cast<pid_t>(agent.Await<Started>()->pid);
  ASSERT_TRUE(AwaitState(trainer, 'D'));

  agent.Send(TakePicture{"part of the gang has failed"});
  agent.Send(Kill{.grace_seconds = 0});

  std::optional<Exited> exited = agent.Await<Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->signal, SIGKILL);
}

TEST_F(ShimTest, ATrainerThatAsksForItsPictureIsToldWhenItIsTaken) {
  ASSERT_EQ(Run({"crash-pictured"}), 0);

  // It ends by the signal only if the picture was counted on its page, else with an exit code.
  EXPECT_EQ(AwaitExitFile().signal, SIGSEGV);
  absl::StatusOr<Picture> picture = DecodePicture(Read(kPictureFile));
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->reason, "the trainer asked for it");
}

TEST_F(ShimTest, APictureThatTheTrainerAskedForIsKeptHoweverLongItTakesToEnd) {
  ASSERT_EQ(Run({"crash-slowly"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  agent.Send(TakePicture{"part of the gang has failed"});
  agent.Send(Kill{.grace_seconds = 0});

  ASSERT_TRUE(agent.Await<Exited>().has_value());
  EXPECT_EQ(DecodePicture(Read(kPictureFile))->reason, "the trainer asked for it");
}

TEST_F(ShimTest, OfSeveralRequestsForOneFailureTheFirstCounts) {
  ASSERT_EQ(Run({"stubborn"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  agent.Send(TakePicture{"first"});
  agent.Send(TakePicture{"second"});
  agent.Send(Kill{.grace_seconds = 0});

  ASSERT_TRUE(agent.Await<Exited>().has_value());
  EXPECT_EQ(DecodePicture(Read(kPictureFile))->reason, "first");
}

TEST_F(ShimTest, TheTrainerGetsItsAssignmentAndTheAgentItsAnswer) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  std::optional<Hello> hello = agent.Await<Hello>();

  EXPECT_EQ(hello->role, "shim");
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(agent.Await<Ready>()->step, 30);
}

TEST_F(ShimTest, LastWordsAreInTheRecord) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  agent.Send(Stop{});

  std::optional<Exited> exited = agent.Await<Exited>();
  EXPECT_EQ(exited->exit_code, 65);
  EXPECT_EQ(exited->fatal_class, "user");
  EXPECT_EQ(exited->fatal_message, "told to stop");
}

TEST_F(ShimTest, AnAgentThatComesBackHearsWhatItMissedAndNothingIsAnsweredTwice) {
  ASSERT_EQ(Run({"talk"}), 0);
  {
    Agent first = Connect();
    first.Send(Update{.settings_json = "commit 5"});
    first.Send(Update{.settings_json = "wait key"});
    first.Send(Update{.settings_json = "progress 1"});
    // The trainer is in order: once this has come, so have the rest. Nothing is answered.
    ASSERT_TRUE(first.Await<Progress>().has_value());
  }

  Agent second = Connect();
  std::vector<Message> missed = second.AwaitCatchUp();

  EXPECT_EQ(Only<Started>(missed).size(), 1u);
  EXPECT_EQ(Only<Ready>(missed).size(), 1u);
  EXPECT_EQ(Only<Progress>(missed).at(0).step, 1);
  EXPECT_EQ(Only<CheckpointCommit>(missed).at(0).request_id, 5);
  EXPECT_EQ(Only<StoreRequest>(missed).at(0).key, "key");
  for (int i = 0; i < 2; ++i) {
    second.Send(CheckpointCommitReply{.request_id = 5, .committed = true});
    second.Send(StoreReply{.request_id = 1, .found = true, .value = "v"});
  }
  second.Send(Update{.settings_json = "progress 2"});
  std::vector<std::string> replies;
  replies.push_back(second.Await<UpdateResult>()->error);
  replies.push_back(second.Await<UpdateResult>()->error);
  EXPECT_THAT(replies, testing::ElementsAre("commit 5", "store 1 v"));
  // Progress follows at once: the repeated replies did not reach the trainer.
  EXPECT_EQ(second.Await<Progress>()->step, 2);

  Agent third = Connect();
  missed = third.AwaitCatchUp();
  EXPECT_TRUE(Only<CheckpointCommit>(missed).empty());
  EXPECT_TRUE(Only<StoreRequest>(missed).empty());
  EXPECT_EQ(Only<UpdateResult>(missed).size(), 1u);
}

TEST_F(ShimTest, ANewerAgentReplacesOneThatHangs) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent first = Connect();
  Agent second = Connect();

  second.Send(Yield{});

  EXPECT_TRUE(second.Await<Exited>().has_value());
  EXPECT_TRUE(first.AwaitClose());
}

TEST_F(ShimTest, TheLastOrderOfAnAgentThatIsGoneIsObeyedThoughItCanBeToldNothing) {
  ASSERT_EQ(Run({"chatter"}), 0);
  {
    Agent agent = Connect();
    pid_t trainer = static_cast<pid_t>(agent.Await<Started>()->pid);
    ASSERT_EQ(::kill(ShimPid(), SIGSTOP), 0);
    ASSERT_TRUE(AwaitState(ShimPid(), 'T'));
    // Then the shim's first deed is to pass on progress, which finds the agent gone.
    ASSERT_TRUE(AwaitState(trainer, 'S'));
    agent.Send(Kill{.grace_seconds = 0});
  }
  ASSERT_EQ(::kill(ShimPid(), SIGCONT), 0);

  EXPECT_TRUE(AwaitExitFile().stopped_by_agent);
}

TEST_F(ShimTest, ACommitOutlivesItsTrainerUntilAnAgentHasTakenIt) {
  ASSERT_EQ(Run({"talk"}), 0);
  pid_t trainer = 0;
  {
    Agent agent = Connect();
    trainer = agent.Await<Started>()->pid;
    agent.Send(Update{.settings_json = "commit 5"});
    ASSERT_TRUE(agent.Await<CheckpointCommit>().has_value());
  }
  ::kill(trainer, SIGKILL);
  ASSERT_TRUE(AwaitEnd(trainer));

  std::vector<Message> missed = Connect().AwaitCatchUp();

  EXPECT_EQ(Only<CheckpointCommit>(missed).size(), 1u);
}

TEST_F(ShimTest, OrphanedTrainersAreStoppedAndTheRecordSaysSo) {
  config_.orphan_timeout_seconds = 0.05;
  ASSERT_EQ(Run({"talk"}), 0);

  Exited exited = AwaitExitFile();
  EXPECT_EQ(exited.signal, SIGTERM);
  EXPECT_TRUE(exited.stopped_by_agent);
  EXPECT_EQ(exited.fatal_class, "orphaned");
}

TEST_F(ShimTest, TheTrainerDiesWithTheShim) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  pid_t trainer = agent.Await<Started>()->pid;
  EXPECT_THAT(Read("started.json"), HasSubstr(absl::StrCat("\"pid\":", trainer)));

  ::kill(ShimPid(), SIGKILL);

  EXPECT_TRUE(AwaitEnd(trainer));
  EXPECT_TRUE(agent.AwaitClose());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/exit.json"));
}

TEST_F(ShimTest, ProcessesThatTheTrainerLeavesBehindAreKilled) {
  ASSERT_EQ(Run({"leave-child"}), 0);
  AwaitExitFile();

  pid_t child = std::atoi(Read("stdout.log").c_str());

  ASSERT_GT(child, 0);
  EXPECT_TRUE(AwaitEnd(child));
}

TEST_F(ShimTest, ProcessesThatEscapeAndPrintOrSendForEverDoNotHoldUpTheRecord) {
  ASSERT_EQ(Run({"leave-floods"}), 0);

  EXPECT_EQ(AwaitExitFile().exit_code, 7);
}

TEST_F(ShimTest, TheLongestLastWordsDoNotMakeTheRecordTooLong) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  agent.Send(Update{.settings_json = "last words"});
  agent.Send(Yield{});

  EXPECT_TRUE(agent.Await<Fatal>().has_value());
  std::optional<Exited> exited = agent.Await<Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->fatal_class, "user");
  EXPECT_GT(exited->fatal_message.size(), 4000u);
}

TEST_F(ShimTest, FloodsOfOutputAreCappedAndKeepTheirOffsets) {
  config_.log_bytes_max = 64 << 10;
  ASSERT_EQ(Run({"flood", std::to_string(1 << 20)}), 0);
  EXPECT_EQ(AwaitExitFile().exit_code, 0);

  std::string present = Read("stdout.log");
  std::string before;
  int64_t offset = -1;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::vector<std::string> parts = absl::StrSplit(entry.path().filename().string(), '.');
    if (parts.size() != 3 || parts[0] != "stdout") continue;
    EXPECT_EQ(offset, -1) << "only one older part is kept";
    offset = std::atoll(parts[1].c_str());
    before = Read(entry.path().filename().string());
  }
  EXPECT_LE(present.size() + before.size(), 64u << 10);
  EXPECT_EQ(offset + before.size() + present.size(), 1u << 20);
  // The line at an offset is the line that was printed there.
  EXPECT_EQ(before.substr(0, 8), absl::StrFormat("%07d\n", offset / 8));
  EXPECT_EQ(present.substr(present.size() - 8), absl::StrFormat("%07d\n", (1 << 20) / 8 - 1));
}

TEST_F(ShimTest, TheTrainerInheritsNothingButItsOwnEnvironment) {
  ASSERT_EQ(Run({"environment"}), 0);
  AwaitExitFile();

  std::vector<std::string> lines = absl::StrSplit(Read("stdout.log"), '\n', absl::SkipEmpty());

  EXPECT_THAT(lines, testing::UnorderedElementsAre("FLAVOUR=vanilla", testing::StartsWith("LLMCTL_SHIM_FD="),
                                                   "LLMCTL_PICTURES=1"));
}

TEST_F(ShimTest, ATrainerThatSendsNonsenseLosesItsLinkNotItsRecord) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  agent.Send(Update{.settings_json = "garbage"});

  EXPECT_EQ(agent.Await<Exited>()->exit_code, 70);
  EXPECT_THAT(Read("shim.log"), HasSubstr("trainer: line is not a JSON object"));
}

TEST_F(ShimTest, AnAgentThatSendsNonsenseLosesItsLinkAndMayComeBack) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent hostile = Connect();
  hostile.SendRaw("{\n");
  ASSERT_TRUE(hostile.AwaitClose());

  Agent agent = Connect();

  EXPECT_EQ(agent.Await<Ready>()->step, 30);
}

TEST_F(ShimTest, ADirectoryServesOneShim) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();

  EXPECT_EQ(RunAsConfigured(), 1);

  EXPECT_THAT(Read("shim.log"), HasSubstr("another shim or an agent holds the lock"));
  agent.Send(Yield{});
  ASSERT_TRUE(agent.Await<Exited>().has_value());
  agent.Send(Release{});
  AwaitShimEnd();
  // And its trainer is never started again.
  EXPECT_EQ(RunAsConfigured(), 1);
  EXPECT_THAT(Read("shim.log"), HasSubstr("exit.json exists"));
}

TEST_F(ShimTest, ADirectoryWhoseShimWasKilledServesNoOther) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());
  ::kill(ShimPid(), SIGKILL);
  AwaitShimEnd();

  EXPECT_EQ(RunAsConfigured(), 1);

  EXPECT_THAT(Read("shim.log"), HasSubstr("started.json exists"));
}

TEST_F(ShimTest, AStarterThatIgnoresChildSignalsDoesNotHideTheEnd) {
  ::signal(SIGCHLD, SIG_IGN);
  int started = Run({"exit", "3"});
  ::signal(SIGCHLD, SIG_DFL);
  ASSERT_EQ(started, 0);

  EXPECT_EQ(AwaitExitFile().exit_code, 3);
}

TEST_F(ShimTest, AStarterWithoutStandardStreamsDoesNotPutSocketsInTheirPlace) {
  without_streams_ = true;
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Ready>().has_value());

  for (int fd = 0; fd < 3; ++fd) {
    EXPECT_EQ(std::filesystem::read_symlink(absl::StrCat("/proc/", ShimPid(), "/fd/", fd)), "/dev/null");
  }
}

TEST_F(ShimTest, AFaultyConfigurationIsSaidAtOnce) {
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/shim.json", "{}").ok());

  EXPECT_EQ(RunAsConfigured(), 1);

  EXPECT_THAT(Read("shim.log"), HasSubstr("shim configuration: assignment: missing"));
}

TEST_F(ShimTest, AStandbyIsToldNothingUntilItIsTakenAndIsTheRanksThen) {
  RunStandby();
  Agent agent = Connect();
  pid_t trainer = static_cast<pid_t>(agent.Await<Started>()->pid);
  ASSERT_TRUE(agent.Await<Waiting>().has_value());
  WriteRank();
  std::string ranks = std::filesystem::path(directory_).parent_path().string() + "/j-1-a1-g2-r3";
  std::filesystem::rename(directory_, ranks);
  directory_ = ranks;

  agent.Send(Take{});

  EXPECT_EQ(agent.Await<Started>()->pid, trainer);
  EXPECT_EQ(agent.Await<Ready>()->step, 30) << "ten times the rank";
  EXPECT_THAT(ReadFile(absl::StrCat("/proc/", ShimPid(), "/cmdline")).value(),
              HasSubstr("--dir=" + std::filesystem::canonical(ranks).string()));
  {
    Agent second = Connect();
    std::vector<Message> kept = second.AwaitCatchUp();
    EXPECT_EQ(Only<Ready>(kept).size(), 1u);
    EXPECT_THAT(Only<Waiting>(kept), testing::IsEmpty());
    second.Send(Take{});  // an agent that does not know says it again
    second.Send(Yield{});
    EXPECT_EQ(second.Await<Exited>()->exit_code, 10);
  }
  EXPECT_EQ(AwaitExitFile().exit_code, 10);
}

TEST_F(ShimTest, AStandbyThatWasNeverTakenEndsWithItsTrainerAndLeavesNoRecord) {
  RunStandby();
  {
    Agent agent = Connect();
    pid_t trainer = static_cast<pid_t>(agent.Await<Started>()->pid);
    ::kill(trainer, SIGKILL);
    EXPECT_EQ(agent.Await<Exited>()->signal, SIGKILL);
  }

  AwaitShimEnd();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/exit.json"));
}

TEST_F(ShimTest, AStandbyThatEndedJustBeforeItIsTakenIsARankThatEnded) {
  RunStandby();
  Agent agent = Connect();
  ::kill(static_cast<pid_t>(agent.Await<Started>()->pid), SIGKILL);
  ASSERT_TRUE(agent.Await<Exited>().has_value());
  WriteRank();

  agent.Send(Take{});

  EXPECT_EQ(agent.Await<Exited>()->signal, SIGKILL);
  EXPECT_THAT(Read("exit.json"), HasSubstr("\"signal\":9"));
}

TEST_F(ShimTest, AStandbyThatCannotReadItsRankIsAStartThatFailed) {
  RunStandby();
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<Waiting>().has_value());
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/shim.json", "{").ok());

  agent.Send(Take{});

  std::optional<Exited> exited = agent.Await<Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_TRUE(exited->start_failed);
  EXPECT_FALSE(exited->stopped_by_agent);
  EXPECT_THAT(exited->error, HasSubstr("shim configuration is not JSON"));
}

TEST_F(ShimTest, AStandbyWithoutAnAgentEnds) {
  config_.orphan_timeout_seconds = 0.05;
  RunStandby();

  AwaitShimEnd();
  auto started = std::get<Started>(DecodeLine(absl::StripSuffix(Read("started.json"), "\n"))->message);
  EXPECT_TRUE(AwaitEnd(static_cast<pid_t>(started.pid)));
}

TEST_F(ShimTest, TakeSaidToARanksShimChangesNothing) {
  ASSERT_EQ(Run({"talk"}), 0);
  Agent agent = Connect();
  ASSERT_TRUE(agent.Await<CaughtUp>().has_value());

  agent.Send(Take{});
  agent.Send(Update{.settings_json = "progress 7"});

  std::optional<Message> next = agent.AwaitAny();
  while (next.has_value() && std::holds_alternative<Ready>(*next)) next = agent.AwaitAny();
  ASSERT_TRUE(next.has_value());
  ASSERT_TRUE(std::holds_alternative<Progress>(*next)) << MessageName(*next);
  EXPECT_EQ(std::get<Progress>(*next).step, 7);
}

}  // namespace
}  // namespace llmctl::contract
