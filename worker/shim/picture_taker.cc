#include "worker/shim/picture_taker.h"

#include <elf.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::shim {
namespace {

// For all threads together: what is not there by then is not worth holding up a failover.
constexpr int64_t kBudgetMs = 40;
constexpr size_t kPageBytes = 4096;
// Deeper stacks are rare, and lose their outermost frames only.
constexpr size_t kStackPages = 16;
constexpr size_t kThreadsMax = 256;

int64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    pid_t tid = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &tid) && threads.size() < kThreadsMax) {
      threads.push_back(tid);
    }
  }
  return threads;
}

// Before the thread is attached: then its state would be ours.
contract::ThreadPicture Describe(pid_t pid, pid_t tid) {
  std::string folder = absl::StrCat("/proc/", pid, "/task/", tid, "/");
  contract::ThreadPicture thread = {.tid = tid};
  std::string stat = ReadFile(folder + "stat").value_or("");
  size_t begin = stat.find('('), end = stat.rfind(") ");
  if (begin != std::string::npos && end != std::string::npos && end + 2 < stat.size()) {
    thread.name = stat.substr(begin + 1, end - begin - 1);
    thread.state = stat.substr(end + 2, 1);
  }
  std::string kernel = ReadFile(folder + "wchan").value_or("");
  if (kernel != "0") thread.kernel = kernel;
  return thread;
}

#if defined(__x86_64__)

bool ReadRegisters(pid_t tid, contract::ThreadPicture& thread) {
  user_regs_struct r = {};
  iovec into = {&r, sizeof r};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &into) != 0) return false;
  thread.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  thread.stack_address = r.rsp;
  return true;
}

#elif defined(__aarch64__)

bool ReadRegisters(pid_t tid, contract::ThreadPicture& thread) {
  user_regs_struct r = {};
  iovec into = {&r, sizeof r};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &into) != 0) return false;
  thread.registers.assign(std::begin(r.regs), std::end(r.regs));
  thread.registers.push_back(r.sp);
  thread.registers.push_back(r.pc);
  thread.stack_address = r.sp;
  return true;
}

#endif

// A page at a time: a copy that meets the end of the stack keeps the pages before it.
void ReadStack(pid_t pid, contract::ThreadPicture& thread) {
  std::string stack(kStackPages * kPageBytes, '\0');
  iovec local = {stack.data(), stack.size()};
  std::array<iovec, kStackPages + 1> remote;
  uint64_t at = thread.stack_address;
  uint64_t end = at + stack.size();
  size_t pieces = 0;
  while (at < end) {
    uint64_t next = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    remote[pieces++] = {reinterpret_cast<void*>(at), next - at};
    at = next;
  }
  ssize_t copied = ::process_vm_readv(pid, &local, 1, remote.data(), pieces, 0);
  stack.resize(copied > 0 ? static_cast<size_t>(copied) : 0);
  thread.stack = std::move(stack);
}

enum class Waited { kNotYet, kStopped, kGone };

struct Wait {
  Waited what = Waited::kNotYet;
  int signal = 0;  // that the thread stopped to be given; 0: it stopped for us
};

Wait Poll(pid_t pid, pid_t tid) {
  // Threads that have ended are reaped, for their process's end is not told before. The main thread never is: its end
  // is the process's, and its parent waits for that.
  int ends = tid == pid ? 0 : WEXITED;
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | ends | __WALL | WNOHANG) != 0) return {Waited::kGone};
  if (info.si_pid == 0) return {Waited::kNotYet};
  if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) return {Waited::kGone};
  // The high bits name the event of a stop that ptrace itself has made; only without one there is a signal to be given.
  bool our_stop = info.si_status >> 8 != 0;
  return {Waited::kStopped, our_stop ? 0 : info.si_status};
}

// A signal that was on its way to the thread when it stopped reaches it now, or never. False: the thread has been
// killed since it stopped, and is still ours to wait for.
bool LetGo(pid_t tid, int signal) {
  return ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<intptr_t>(signal)) == 0;
}

}  // namespace

contract::Picture PictureTaker::Take(pid_t pid, const std::string& reason) {
  contract::Picture picture = {.reason = reason, .nanoseconds = NowNs()};
  picture.maps = ReadFile(absl::StrCat("/proc/", pid, "/maps")).value_or("");
  std::map<pid_t, contract::ThreadPicture> stopping;
  for (pid_t tid : ThreadsOf(pid)) {
    contract::ThreadPicture thread = Describe(pid, tid);
    if (unsettled_.contains(tid)) {
      thread.note = "it has not come back from the kernel since the picture before";
      picture.threads.push_back(std::move(thread));
    } else if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      thread.note = absl::StrCat("ptrace: ", std::strerror(errno));
      picture.threads.push_back(std::move(thread));
    } else {
      stopping.emplace(tid, std::move(thread));
    }
  }
  // All together, not each after what takes the longest, its description.
  for (const auto& [tid, thread] : stopping) ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  int64_t deadline = picture.nanoseconds + kBudgetMs * 1000000;
  while (!stopping.empty()) {
    for (auto it = stopping.begin(); it != stopping.end();) {
      Wait wait = Poll(pid, it->first);
      if (wait.what == Waited::kNotYet) {
        ++it;
        continue;
      }
      if (wait.what == Waited::kStopped) {
        if (ReadRegisters(it->first, it->second)) ReadStack(pid, it->second);
        if (!LetGo(it->first, wait.signal)) unsettled_[it->first] = pid;
        picture.threads.push_back(std::move(it->second));
      }
      it = stopping.erase(it);
    }
    if (stopping.empty() || NowNs() >= deadline) break;
    ::poll(nullptr, 0, /*timeout=*/1);
  }
  for (auto& [tid, thread] : stopping) {
    thread.note = absl::StrCat("it did not stop within ", kBudgetMs, " ms: it waits in the kernel");
    picture.threads.push_back(std::move(thread));
    unsettled_[tid] = pid;
  }
  return picture;
}

void PictureTaker::Settle() {
  for (auto it = unsettled_.begin(); it != unsettled_.end();) {
    Wait wait = Poll(it->second, it->first);
    bool settled = wait.what == Waited::kGone || (wait.what == Waited::kStopped && LetGo(it->first, wait.signal));
    it = settled ? unsettled_.erase(it) : std::next(it);
  }
}

}  // namespace llmctl::shim
