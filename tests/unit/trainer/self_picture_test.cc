// A process that crashes, and this one in the place of its shim.
#include "worker/trainer/self_picture.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::trainer {
namespace {

// Seen by both processes.
struct Shared {
  std::atomic<bool> asked = false;
  std::atomic<pid_t> second = 0;  // the thread that crashes next
};

// It crashes in one thread, and once that has asked for its picture, in another.
[[noreturn]] void CrashTwice(const std::string& path, Shared& shared) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::unique_ptr<contract::PhasePage> page = *contract::PhasePage::Create(path);
  PictureCrashes(page.get());
  std::thread second([&] {
    while (!shared.asked) std::this_thread::yield();
    shared.second = ::gettid();
    ::raise(SIGBUS);
  });
  ::raise(SIGSEGV);
  ::_exit(1);
}

// That it sleeps, as one does that waits for a moment to pass; a process that is gone has no threads.
bool SleepsOrIsGone(pid_t pid, pid_t thread) {
  std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/stat")).value_or("");
  size_t at = stat.rfind(") ");
  return at == std::string::npos || stat[at + 2] == 'S' || stat[at + 2] == 'Z';
}

TEST(SelfPicture, AThreadThatCrashesToEndsTheProcessOnlyWhenThePictureIsTaken) {
  TemporaryDirectory folder;
  std::string path = folder.path() + "/phase.page";
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared();
  sigset_t request, before;
  sigemptyset(&request);
  sigaddset(&request, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &request, &before);

  pid_t pid = ::fork();
  if (pid == 0) CrashTwice(path, *shared);
  timespec patience = {.tv_sec = 20, .tv_nsec = 0};
  ASSERT_EQ(::sigtimedwait(&request, nullptr, &patience), SIGUSR1);
  shared->asked = true;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto waits = [&] { return shared->second != 0 && SleepsOrIsGone(pid, shared->second); };
  while (!waits() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  contract::CountPicture(path);

  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGSEGV) << "by the signal of the first";
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace llmctl::trainer
