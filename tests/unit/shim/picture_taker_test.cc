// Pictures of real processes: running, waiting, stopped, stuck in the kernel.
#include "worker/shim/picture_taker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
  // Its wait status.
  int End() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }
  // Waits until /proc shows the state of the main thread; false at the deadline.
  bool Reaches(char state) const {
    auto end = std::chrono::steady_clock::now() + kDeadline;
    while (std::chrono::steady_clock::now() < end) {
      std::string stat = ReadFile(absl::StrCat("/proc/", pid_, "/stat")).value_or("");
      size_t at = stat.rfind(") ");
      if (at != std::string::npos && stat[at + 2] == state) return true;
      std::this_thread::yield();
    }
    return false;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

const ThreadPicture& MainThread(const Picture& picture, pid_t pid) {
  static const ThreadPicture kNone;
  for (const ThreadPicture& thread : picture.threads) {
    if (thread.tid == pid) return thread;
  }
  return kNone;
}

TEST(PictureTaker, ShowsEveryThreadWithItsStackAndLetsItGoOn) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  Child child([&] {
    std::thread other([] { ::pause(); });
    char byte;
    // Interrupted, it would end.
    _exit(::read(pipe[0], &byte, 1) == 1 ? 7 : 8);
  });
  ASSERT_TRUE(child.Reaches('S'));

  PictureTaker taker;
  Picture picture = taker.Take(child.pid(), "a test");

  EXPECT_EQ(picture.reason, "a test");
  EXPECT_THAT(picture.maps, HasSubstr("libc"));
  EXPECT_EQ(picture.threads.size(), 2u);
  for (const ThreadPicture& thread : picture.threads) {
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

  const ThreadPicture& thread = MainThread(picture, child.pid());
  EXPECT_EQ(thread.state, "T");
  EXPECT_EQ(thread.note, "");
  EXPECT_GT(thread.stack.size(), 64u);
  EXPECT_TRUE(child.Reaches('T'));
}

TEST(PictureTaker, AThreadThatWaitsInTheKernelIsNamedAndDoesNotHoldUpTheEnd) {
  // The parent of a vfork waits uninterruptibly until its child has gone.
  Child child([] {
    pid_t inner = ::vfork();
    if (inner == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
  });
  ASSERT_TRUE(child.Reaches('D'));

  PictureTaker taker;
  Picture picture = taker.Take(child.pid(), "it hangs");
  Picture again = taker.Take(child.pid(), "it still hangs");

  EXPECT_EQ(MainThread(picture, child.pid()).state, "D");
  EXPECT_THAT(MainThread(picture, child.pid()).note, HasSubstr("did not stop within"));
  EXPECT_THAT(MainThread(again, child.pid()).note, HasSubstr("since the picture before"));
  EXPECT_EQ(WTERMSIG(child.End()), SIGKILL);
  taker.Settle();
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
