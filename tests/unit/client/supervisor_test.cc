// The supervisor with real processes: small shell commands in place of daemons. It runs in a child of the test,
// as it does in life, and is watched through its state file.
#include "client/local/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::client {
namespace {

using testing::HasSubstr;

// Far longer than anything here takes; only a broken supervisor needs it.
constexpr std::chrono::seconds kDeadline{30};
constexpr absl::Duration kStopPatience = absl::Milliseconds(200);

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, /*timeout=*/2);
  }
  return true;
}

bool IsAlive(int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0; }

class SupervisorProcess {
 public:
  SupervisorProcess(const ClusterDirectory& directory, std::vector<DaemonCommand> commands) : directory_(directory) {
    pid_ = ::fork();
    if (pid_ == 0) {
      absl::Status status = Supervisor(directory, LocalState(), std::move(commands), kStopPatience).Run();
      ::_exit(status.ok() ? 0 : 1);
    }
  }
  ~SupervisorProcess() {
    if (pid_ > 0) Stop(SIGTERM);
  }

  // The wait status.
  int Stop(int signal) {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

  LocalState State() const {
    return DecodeLocalState(ReadFile(directory_.state_file()).value_or("")).value_or(LocalState());
  }
  DaemonState Daemon(size_t index) const {
    LocalState state = State();
    return index < state.daemons.size() ? state.daemons[index] : DaemonState();
  }

 private:
  const ClusterDirectory directory_;
  pid_t pid_ = 0;
};

ClusterDirectory MakeDirectory(const std::string& name) {
  ClusterDirectory directory(testing::TempDir() + "/" + name);
  EXPECT_EQ(MakeDirectories(directory.log_directory()), absl::OkStatus());
  return directory;
}

DaemonCommand Shell(const ClusterDirectory& directory, const std::string& name, const std::string& script) {
  return {name, {"/bin/sh", "-c", script}, directory.log_file(name)};
}

TEST(Supervisor, RestartsADaemonThatWasKilledAndNoOther) {
  ClusterDirectory directory = MakeDirectory("supervisor-restarts");
  SupervisorProcess supervisor(directory, {Shell(directory, "a", "exec sleep 1000"),
                                           Shell(directory, "b", "exec sleep 1000")});
  ASSERT_TRUE(Eventually([&] { return supervisor.Daemon(1).pid != 0; }));
  DaemonState a = supervisor.Daemon(0), b = supervisor.Daemon(1);

  ::kill(static_cast<pid_t>(a.pid), SIGKILL);

  ASSERT_TRUE(Eventually([&] { return supervisor.Daemon(0).restarts == 1; }));
  EXPECT_NE(supervisor.Daemon(0).pid, a.pid);
  EXPECT_EQ(supervisor.Daemon(0).last_end, "signal 9");
  EXPECT_EQ(supervisor.Daemon(1).pid, b.pid);
}

TEST(Supervisor, KeepsTryingADaemonThatEndsByItself) {
  ClusterDirectory directory = MakeDirectory("supervisor-tries");
  SupervisorProcess supervisor(directory, {Shell(directory, "a", "echo trying; exit 3")});

  EXPECT_TRUE(Eventually([&] { return supervisor.Daemon(0).restarts >= 3; }));

  EXPECT_EQ(supervisor.Daemon(0).last_end, "exit code 3");
  EXPECT_THAT(LogTail(directory.log_file("a"), 5), HasSubstr("trying\ntrying\n"));
}

TEST(Supervisor, StopsItsDaemonsEvenDeafOnes) {
  ClusterDirectory directory = MakeDirectory("supervisor-stops");
  std::string ready = directory.path() + "/deaf";
  SupervisorProcess supervisor(directory,
                               {Shell(directory, "polite", "exec sleep 1000"),
                                Shell(directory, "deaf", absl::StrCat("trap '' TERM; : > ", ready,
                                                                      "; while :; do sleep 0.1; done"))});
  ASSERT_TRUE(Eventually([&] { return ReadFile(ready).ok() && supervisor.Daemon(1).pid != 0; }));
  DaemonState polite = supervisor.Daemon(0), deaf = supervisor.Daemon(1);

  int status = supervisor.Stop(SIGTERM);

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(IsAlive(polite.pid));
  EXPECT_FALSE(IsAlive(deaf.pid));
  EXPECT_FALSE(ReadFile(directory.state_file()).ok()) << "a stopped cluster has no state";
}

TEST(Supervisor, TakesItsDaemonsAlongWhenItIsKilled) {
  ClusterDirectory directory = MakeDirectory("supervisor-killed");
  SupervisorProcess supervisor(directory, {Shell(directory, "a", "exec sleep 1000")});
  ASSERT_TRUE(Eventually([&] { return supervisor.Daemon(0).pid != 0; }));
  int64_t daemon = supervisor.Daemon(0).pid;

  supervisor.Stop(SIGKILL);

  EXPECT_TRUE(Eventually([&] {
    // Nobody here waits for an orphan; a zombie has ended.
    std::string stat = ReadFile(absl::StrCat("/proc/", daemon, "/stat")).value_or("");
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  }));
}

TEST(Supervisor, DoesNotHandItsLockToDaemons) {
  ClusterDirectory directory = MakeDirectory("supervisor-lock");
  absl::StatusOr<FileLock> lock = FileLock::Acquire(directory.lock_file());
  ASSERT_TRUE(lock.ok()) << lock.status();

  SupervisorProcess supervisor(directory, {Shell(directory, "a", "ls -l /proc/self/fd; exec sleep 1000")});

  ASSERT_TRUE(Eventually([&] { return !LogTail(directory.log_file("a"), 20).empty(); }));
  EXPECT_EQ(LogTail(directory.log_file("a"), 20).find("supervisor.lock"), std::string::npos);
}

}  // namespace
}  // namespace llmctl::client
