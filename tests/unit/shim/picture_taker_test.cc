// Pictures of real processes: running, waiting, stopped, stuck in the kernel.
#include "worker/shim/picture_taker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::shim {
namespace {

using contract::Picture;
using contract::ThreadPicture;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kDeadline = std::chrono::seconds(20);

// False at the deadline.
bool Awaits(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

// From a stat file of /proc; 0 if there is none.
char StateOf(const std::string& stat) {
  size_t at = stat.rfind(") ");
  return at == std::string::npos ? 0 : stat[at + 2];
}

// A child that runs `body` once it has said that it is there; killed at the end.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      [[maybe_unused]] ssize_t n = ::write(ready[1], "!", 1);
      body();
      ::_exit(0);
    }
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    if (pid_ != 0) End();
  }
  // Its wait status; -1: it could not be waited for.
  int End() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    return ::waitpid(std::exchange(pid_, 0), &status, 0) > 0 ? status : -1;
  }
  // Waits until /proc shows the state of the main thread; false at the deadline.
  bool Reaches(char state) const {
    return Awaits([&] { return StateOf(Read("stat")) == state; });
  }
  std::vector<pid_t> Threads() const {
    std::vector<pid_t> tids;
    for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/task"))) {
      tids.push_back(std::stoi(task.path().filename()));
    }
    return tids;
  }
  bool Sleeps(pid_t tid) const { return StateOf(Read(absl::StrCat("task/", tid, "/stat"))) == 'S'; }
  // So many of its threads sleep.
  bool Waits(int threads) const {
    std::vector<pid_t> tids = Threads();
    return std::count_if(tids.begin(), tids.end(), [&](pid_t tid) { return Sleeps(tid); }) >= threads;
  }
  bool IsTraced() const { return absl::StrContains(Read("status"), absl::StrCat("TracerPid:\t", ::getpid(), "\n")); }
  // So that its parent can hear of it; true also if nobody ever will again.
  bool HasEnded() const {
    siginfo_t end = {};
    return ::waitid(P_PID, pid_, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == pid_;
  }
  pid_t pid() const { return pid_; }

 private:
  std::string Read(const std::string& file) const {
    return ReadFile(absl::StrCat("/proc/", pid_, "/", file)).value_or("");
  }

  pid_t pid_ = 0;
};

const ThreadPicture& ThreadOf(const Picture& picture, pid_t tid) {
  static const ThreadPicture kNone;
  for (const ThreadPicture& thread : picture.threads) {
    if (thread.tid == tid) return thread;
  }
  return kNone;
}

TEST(PictureTaker, ShowsEveryThreadWithItsStackAndLetsItGoOn) {
  int pipe[2], tids[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::pipe(tids), 0);
  Child child([&] {
    std::thread other([&] {
      pid_t tid = ::gettid();
      [[maybe_unused]] ssize_t n = ::write(tids[1], &tid, sizeof tid);
      while (true) ::pause();
    });
    char byte;
    // Interrupted, it would end.
    _exit(::read(pipe[0], &byte, 1) == 1 ? 7 : 8);
  });
  pid_t other = 0;
  ASSERT_EQ(::read(tids[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  ASSERT_TRUE(Awaits([&] { return child.Sleeps(child.pid()) && child.Sleeps(other); }));

  PictureTaker taker;
  Picture picture = taker.Take(child.pid(), "a test");

  EXPECT_EQ(picture.reason, "a test");
  EXPECT_THAT(picture.maps, HasSubstr("libc"));
  // A sanitizer has threads of its own there.
  EXPECT_EQ(picture.threads.size(), child.Threads().size());
  for (pid_t tid : {child.pid(), other}) {
    const ThreadPicture& thread = ThreadOf(picture, tid);
    EXPECT_EQ(thread.note, "");
    EXPECT_EQ(thread.state, "S");
    EXPECT_THAT(thread.registers, Not(IsEmpty()));
    EXPECT_GT(thread.stack.size(), 64u);
  }
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, 0), child.pid());
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(PictureTaker, AStoppedProcessIsPicturedAndStaysStopped) {
  Child child([] {
    while (true) ::pause();
  });
  ::kill(child.pid(), SIGSTOP);
  ASSERT_TRUE(child.Reaches('T'));

  PictureTaker taker;
  Picture picture = taker.Take(child.pid(), "it hangs");

  const ThreadPicture& thread = ThreadOf(picture, child.pid());
  EXPECT_EQ(thread.state, "T");
  EXPECT_EQ(thread.note, "");
  EXPECT_GT(thread.stack.size(), 64u);
  EXPECT_TRUE(child.Reaches('T'));
}

TEST(PictureTaker, AThreadThatWaitsInTheKernelIsNamedAndDoesNotHoldUpTheEnd) {
  // The parent of a vfork waits uninterruptibly until its child has gone. (Sanitizers make a fork of vfork().)
  Child child([] {
    if (::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
  });
  ASSERT_TRUE(child.Reaches('D'));

  PictureTaker taker;
  Picture picture = taker.Take(child.pid(), "it hangs");
  Picture again = taker.Take(child.pid(), "it still hangs");

  EXPECT_EQ(ThreadOf(picture, child.pid()).state, "D");
  EXPECT_THAT(ThreadOf(picture, child.pid()).note, HasSubstr("did not stop within"));
  EXPECT_THAT(ThreadOf(again, child.pid()).note, HasSubstr("since the picture before"));
  // As the shim sees it: the signal that a child has ended comes before anybody waits for it.
  ::kill(child.pid(), SIGKILL);
  ASSERT_TRUE(child.Reaches('Z'));
  taker.Settle();
  EXPECT_EQ(child.End(), SIGKILL) << "its end was taken from its parent";
}

TEST(PictureTaker, AProcessThatDiesWhileItIsPicturedIsLeftForItsParent) {
  constexpr int kThreads = 60;
  for (int round = 0; round < 10; ++round) {
    Child child([] {
      for (int i = 1; i < kThreads; ++i) std::thread([] { ::pause(); }).detach();
      while (true) ::pause();
    });
    ASSERT_TRUE(Awaits([&] { return child.Waits(kThreads); }));
    std::atomic<bool> taken = false;
    // The main thread is the first to be attached, and the rest takes milliseconds.
    std::thread killer([&] {
      while (!taken && !child.IsTraced()) std::this_thread::yield();
      ::kill(child.pid(), SIGKILL);
    });

    PictureTaker taker;
    taker.Take(child.pid(), "a cascade");

    taken = true;
    killer.join();
    ASSERT_TRUE(Awaits([&] {
      taker.Settle();
      return child.HasEnded();
    })) << "its end is held back by a thread that nobody has let go";
    EXPECT_EQ(child.End(), SIGKILL) << "its end was taken from its parent";
  }
}

TEST(PictureTaker, ASignalThatComesMeanwhileIsNotLost) {
  constexpr int kPictures = 50;
  void* shared = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* enough = new (shared) std::atomic<bool>(false);
  Child child([enough] {
    // To have the pictures take their time.
    for (int i = 0; i < 16; ++i) std::thread([] { ::pause(); }).detach();
    static volatile sig_atomic_t delivered = 0;
    ::signal(SIGUSR1, [](int) { delivered = 1; });
    while (!*enough) {
      delivered = 0;
      // Delivered when this returns.
      ::raise(SIGUSR1);
      if (delivered == 0) ::_exit(8);
    }
    ::_exit(7);
  });

  PictureTaker taker;
  for (int i = 0; i < kPictures; ++i) {
    taker.Take(child.pid(), "it is talked to");
    taker.Settle();
  }

  *enough = true;
  EXPECT_TRUE(Awaits([&] {
    taker.Settle();
    return child.HasEnded();
  }));
  EXPECT_EQ(child.End(), W_EXITCODE(7, 0));
  ::munmap(shared, sizeof(std::atomic<bool>));
}

TEST(PictureTaker, AProcessThatIsGoneGivesAnEmptyPicture) {
  Child child([] {});
  pid_t pid = child.pid();
  child.End();

  PictureTaker taker;
  EXPECT_THAT(taker.Take(pid, "too late").threads, IsEmpty());
}

}  // namespace
}  // namespace llmctl::shim
