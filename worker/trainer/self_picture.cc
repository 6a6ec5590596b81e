#include "worker/trainer/self_picture.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace llmctl::trainer {
namespace {

// The shim takes some milliseconds; a machine that does ten other things, more.
constexpr int64_t kCrashPatienceMs = 300;
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// A signal handler can reach nothing else.
std::atomic<const contract::PhasePage*> crash_page = nullptr;
// A stack that has overflowed has no room for a handler.
alignas(16) char crash_stack[64 << 10];

int64_t NowMs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

void Pause() {
  timespec pause = {.tv_sec = 0, .tv_nsec = 200000};
  nanosleep(&pause, nullptr);
}

bool Ask(const contract::PhasePage& page, int64_t patience_ms) {
  uint64_t before = page.pictures();
  if (kill(getppid(), SIGUSR1) != 0) return false;
  int64_t deadline = NowMs() + patience_ms;
  while (page.pictures() == before) {
    if (NowMs() >= deadline) return false;
    Pause();
  }
  return true;
}

void OnCrash(int number) {
  // Of several threads that crash at once one asks, and ends the process when it has its picture; the others wait for
  // that, or they would end it before.
  const contract::PhasePage* page = crash_page.exchange(nullptr);
  if (page != nullptr) Ask(*page, kCrashPatienceMs);
  for (int64_t end = NowMs() + kCrashPatienceMs; page == nullptr && NowMs() < end;) Pause();
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

bool AskForPicture(const contract::PhasePage& page, absl::Duration patience) {
  return Ask(page, absl::ToInt64Milliseconds(patience));
}

void PictureCrashes(const contract::PhasePage* page) {
  crash_page = page;
  stack_t stack = {};
  stack.ss_sp = crash_stack;
  stack.ss_size = sizeof crash_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = page != nullptr ? OnCrash : SIG_DFL;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int number : kCrashes) sigaction(number, &action, nullptr);
}

}  // namespace llmctl::trainer
