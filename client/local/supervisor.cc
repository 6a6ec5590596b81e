#include "client/local/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

// A daemon that ran this long was well; its next end is news and not one of a series.
constexpr absl::Duration kWellAfter = absl::Seconds(10);

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// The next watched signal, or 0 after `patience`.
int AwaitSignal(absl::Duration patience) {
  sigset_t signals = WatchedSignals();
  timespec timeout = absl::ToTimespec(std::clamp(patience, absl::ZeroDuration(), absl::Hours(1)));
  int signal = ::sigtimedwait(&signals, nullptr, &timeout);
  return std::max(signal, 0);
}

std::string EndText(int wait_status) {
  return WIFSIGNALED(wait_status) ? absl::StrCat("signal ", WTERMSIG(wait_status))
                                  : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
}

// In the child: becomes the daemon, or ends with 127. Only async-signal-safe calls.
[[noreturn]] void Become(char* const* argv, int log, pid_t supervisor) {
  // Ctrl-C at a supervisor in the foreground is for the supervisor, which stops the daemons in order.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != supervisor) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(argv[0], argv);
  ::_exit(127);
}

absl::StatusOr<pid_t> Spawn(const DaemonCommand& command) {
  int log = ::open(command.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return ErrnoStatus(errno, absl::StrCat("open ", command.log_file));
  std::vector<char*> argv;
  for (const std::string& argument : command.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t self = ::getpid();
  pid_t pid = ::fork();
  if (pid == 0) Become(argv.data(), log, self);
  int error = errno;
  ::close(log);
  if (pid < 0) return ErrnoStatus(error, absl::StrCat("fork for ", command.name));
  return pid;
}

}  // namespace

absl::Duration RestartPause(int quick_ends) {
  if (quick_ends <= 1) return absl::ZeroDuration();
  return std::min(absl::Milliseconds(200) * (1 << std::min(quick_ends - 2, 10)), absl::Seconds(5));
}

Supervisor::Supervisor(const ClusterDirectory& directory, LocalState state, std::vector<DaemonCommand> commands,
                       absl::Duration stop_patience)
    : directory_(directory), about_(std::move(state)), stop_patience_(stop_patience) {
  for (DaemonCommand& command : commands) daemons_.push_back({.command = std::move(command)});
}

absl::Status Supervisor::Run() {
  sigset_t signals = WatchedSignals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  absl::Status status = StartDue();
  while (status.ok()) {
    int signal = AwaitSignal(UntilNextStart());
    if (signal == SIGTERM || signal == SIGINT) break;
    Reap();
    status = StartDue();
  }
  StopAll();
  return status;
}

absl::Status Supervisor::StartDue() {
  bool changed = false;
  for (Daemon& daemon : daemons_) {
    absl::Duration now = Now().monotonic;
    if (daemon.pid != 0 || daemon.start_at > now) continue;
    LLM_ASSIGN_OR_RETURN(daemon.pid, Spawn(daemon.command));
    if (!daemon.last_end.empty()) ++daemon.restarts;
    daemon.started = now;
    changed = true;
  }
  return changed ? WriteState() : absl::OkStatus();
}

void Supervisor::Reap() {
  for (Daemon& daemon : daemons_) {
    int wait_status = 0;
    if (daemon.pid == 0 || ::waitpid(daemon.pid, &wait_status, WNOHANG) != daemon.pid) continue;
    absl::Duration now = Now().monotonic;
    daemon.quick_ends = now - daemon.started >= kWellAfter ? 1 : daemon.quick_ends + 1;
    daemon.start_at = now + RestartPause(daemon.quick_ends);
    daemon.pid = 0;
    daemon.last_end = EndText(wait_status);
  }
}

void Supervisor::StopAll() {
  for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
    if (daemon->pid != 0) ::kill(daemon->pid, SIGTERM);
  }
  for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
    if (daemon->pid == 0 || AwaitEnd(*daemon, stop_patience_)) continue;
    ::kill(daemon->pid, SIGKILL);
    ::waitpid(daemon->pid, nullptr, 0);
  }
  ::unlink(directory_.coordinator_address_file().c_str());
  ::unlink(directory_.state_file().c_str());
}

bool Supervisor::AwaitEnd(const Daemon& daemon, absl::Duration patience) {
  const absl::Duration deadline = Now().monotonic + patience;
  while (::waitpid(daemon.pid, nullptr, WNOHANG) != daemon.pid) {
    absl::Duration left = deadline - Now().monotonic;
    if (left <= absl::ZeroDuration()) return false;
    // Another child's SIGCHLD may stand for this one's: look again soon in any case.
    AwaitSignal(std::min(left, absl::Milliseconds(100)));
  }
  return true;
}

absl::Duration Supervisor::UntilNextStart() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const Daemon& daemon : daemons_) {
    if (daemon.pid == 0) next = std::min(next, daemon.start_at - Now().monotonic);
  }
  return next;
}

absl::Status Supervisor::WriteState() const {
  LocalState state = about_;
  state.pid = ::getpid();
  for (const Daemon& daemon : daemons_) {
    state.daemons.push_back({daemon.command.name, daemon.pid, daemon.restarts, daemon.last_end});
  }
  return WriteFileAtomically(directory_.state_file(), EncodeLocalState(state));
}

}  // namespace llmctl::client
