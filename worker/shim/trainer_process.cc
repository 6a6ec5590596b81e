#include "worker/shim/trainer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/shim_config.h"

namespace llmctl::shim {
namespace {

struct Pipe {
  UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "create a pipe");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// execve's form of a list; points into `strings`.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What the child needs, prepared before the fork: after it only system calls are made.
struct ChildPlan {
  std::vector<char*> argv;
  std::vector<char*> environment;
  pid_t shim;
  int niceness;
  int null, output, errors, link, failure;
};

constexpr int kBackgroundNiceness = 10;

// Without a privilege, or a limit that allows it, a nice process stays nice for ever.
bool MayRaisePriority() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= 20) return true;
  const std::string status = ReadFile("/proc/self/status").value_or("");
  const std::string field = "CapEff:";
  size_t at = status.find(field);
  constexpr int kCapSysNice = 23;
  return at != std::string::npos && (std::strtoull(&status[at + field.size()], nullptr, 16) >> kCapSysNice & 1);
}

[[noreturn]] void FailChild(int failure_fd) {
  int error = errno;
  [[maybe_unused]] ssize_t n = ::write(failure_fd, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  ::setpgid(0, 0);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) FailChild(plan.failure);
  // The shim may have died before the line above.
  if (::getppid() != plan.shim) ::_exit(127);
  // If memory runs out on this host, let the trainer go, not the shim that has to report it.
  int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    [[maybe_unused]] ssize_t n = ::write(score, "500", 3);
  }
  if (plan.niceness != 0) ::setpriority(PRIO_PROCESS, 0, plan.niceness);
  for (int signal : {SIGPIPE, SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(plan.null, STDIN_FILENO) < 0 || ::dup2(plan.output, STDOUT_FILENO) < 0 ||
      ::dup2(plan.errors, STDERR_FILENO) < 0 || ::fcntl(plan.link, F_SETFD, 0) != 0) {
    FailChild(plan.failure);
  }
  ::execve(plan.argv[0], plan.argv.data(), plan.environment.data());
  FailChild(plan.failure);
}

// Field 22 of /proc/<pid>/stat; the second field may contain anything but its closing parenthesis is the last.
int64_t StartTicks(pid_t pid) {
  absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return 0;
  size_t after_name = stat->rfind(") ");
  if (after_name == std::string::npos) return 0;
  std::vector<std::string> fields = absl::StrSplit(stat->substr(after_name + 2), ' ');
  int64_t ticks = 0;
  constexpr size_t kStartTicks = 22 - 3;  // the first two fields are cut off
  if (fields.size() <= kStartTicks || !absl::SimpleAtoi(fields[kStartTicks], &ticks)) return 0;
  return ticks;
}

// The errno with which the child failed to become the program; 0 if it did.
int AwaitExec(int failure_fd) {
  int error = 0;
  ssize_t n;
  do {
    n = ::read(failure_fd, &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  return n == sizeof error ? error : 0;
}

}  // namespace

absl::StatusOr<TrainerProcess> StartTrainer(const TrainerStart& start) {
  LLM_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  LLM_ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  LLM_ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  int link[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0) {
    return ErrnoStatus(errno, "create a socket pair");
  }
  UniqueFd our_end(link[0]), trainer_end(link[1]);
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return ErrnoStatus(errno, "open /dev/null");

  std::vector<std::string> full_environment = start.environment;
  full_environment.push_back(absl::StrCat(contract::kShimFdVariable, "=", trainer_end.get()));
  const std::string& program = start.argv[0];
  full_environment.push_back(absl::StrCat(contract::kPicturesVariable, "=1"));
  ChildPlan plan = {.argv = Pointers(start.argv),
                    .environment = Pointers(full_environment),
                    .shim = ::getpid(),
                    .niceness = start.in_background && MayRaisePriority() ? kBackgroundNiceness : 0,
                    .null = null.get(),
                    .output = output.write.get(),
                    .errors = errors.write.get(),
                    .link = trainer_end.get(),
                    .failure = failure.write.get()};
  pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, absl::StrCat("start ", program, ": fork"));
  if (pid == 0) RunChild(plan);
  // Also here, so that a kill of the group cannot come before the child's own call.
  ::setpgid(pid, pid);
  failure.write.Reset();
  if (int error = AwaitExec(failure.read.get()); error != 0) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoStatus(error, absl::StrCat("start ", program));
  }
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
  return TrainerProcess{.pid = pid,
                        .start_ticks = StartTicks(pid),
                        .link = std::move(our_end),
                        .output = std::move(output.read),
                        .errors = std::move(errors.read)};
}

void BringToForeground(pid_t trainer) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", trainer, "/task"), error)) {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(std::atoi(task.path().filename().c_str())), 0);
  }
}

}  // namespace llmctl::shim
