#include "worker/data/pipeline/worker_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

// In the child of a fork: only what is allowed there.
[[noreturn]] void Become(char* const* argv, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before that
  ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

absl::Status HowItEnded(pid_t pid, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  std::string how = WIFSIGNALED(status) ? absl::StrCat("was killed by signal ", WTERMSIG(status), " (",
                                                       ::strsignal(WTERMSIG(status)), ")")
                                        : absl::StrCat("ended with exit code ", WEXITSTATUS(status));
  return absl::AbortedError(absl::StrCat("a worker process (pid ", pid, ") ", how,
                                         "; run the same command again: it goes on where it was"));
}

}  // namespace

absl::StatusOr<WorkerProcesses> WorkerProcesses::Start(const std::vector<std::string>& arguments, int count) {
  std::string name = "llm-data";
  std::vector<char*> argv{name.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  WorkerProcesses out;
  pid_t parent = ::getpid();
  for (int i = 0; i < count; ++i) {
    pid_t pid = ::fork();
    if (pid < 0) return ErrnoStatus(errno, "start a worker process");
    if (pid == 0) Become(argv.data(), parent);
    out.running_.push_back(pid);
  }
  return out;
}

WorkerProcesses::~WorkerProcesses() {
  for (pid_t pid : running_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

absl::Status WorkerProcesses::Reap(pid_t& pid, bool wait) {
  if (pid == 0) return absl::OkStatus();
  int status = 0;
  pid_t ended;
  do {
    ended = ::waitpid(pid, &status, wait ? 0 : WNOHANG);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid) return absl::OkStatus();
  return HowItEnded(std::exchange(pid, 0), status);
}

absl::Status WorkerProcesses::Check() {
  for (pid_t& pid : running_) LLM_RETURN_IF_ERROR(Reap(pid, /*wait=*/false));
  return absl::OkStatus();
}

absl::Status WorkerProcesses::Wait() {
  absl::Status status;
  for (pid_t& pid : running_) status.Update(Reap(pid, /*wait=*/true));
  return status;
}

}  // namespace llmctl::data
