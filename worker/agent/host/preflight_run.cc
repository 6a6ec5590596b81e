#include "worker/agent/host/preflight_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "worker/contract/preflight.h"

namespace llmctl::agent {
namespace {

// From the kill to the end.
constexpr absl::Duration kDeathPatience = absl::Seconds(5);
constexpr size_t kOutputBytesMost = 256 << 10;

contract::Preflight Failed(std::string why) {
  return {.passed = false, .failure = std::move(why), .checks = {}};
}

// Until `fd` can be read or its process has ended; false at the deadline.
bool AwaitReadable(std::vector<pollfd> fds, absl::Duration deadline) {
  while (true) {
    absl::Duration left = deadline - Now().monotonic;
    if (left <= absl::ZeroDuration()) return false;
    left = std::min(left, absl::Hours(1));
    if (::poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(left) + 1)) > 0) return true;
  }
}

// All that `fd` gives until its end or that of its process, who may have left others behind that hold it; stops early
// at the deadline.
std::string ReadAll(int fd, int process, absl::Duration deadline) {
  std::string text;
  char buffer[4096];
  while (text.size() < kOutputBytesMost && AwaitReadable({{fd, POLLIN, 0}, {process, POLLIN, 0}}, deadline)) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

contract::Preflight Judge(const std::string& output, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return Failed(absl::StrCat("llm-trainer preflight was killed by signal ", WTERMSIG(wait_status)));
  }
  absl::StatusOr<contract::Preflight> found = contract::DecodePreflight(output);
  if (found.ok()) return *std::move(found);
  return Failed(absl::StrCat("llm-trainer preflight ended with code ", WEXITSTATUS(wait_status), ": ",
                             found.status().message()));
}

}  // namespace

// Shared by the run that began it and the thread that follows it.
class PreflightRun::Child {
 public:
  Child(pid_t pid, UniqueFd output, std::function<void(PreflightFinished)> done)
      : pid_(pid),
        process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        output_(std::move(output)),
        done_(std::move(done)) {}

  // On a thread of its own, until the process is gone.
  void Follow(absl::Duration patience) {
    absl::Duration deadline = Now().monotonic + patience;
    std::string output = ReadAll(output_.get(), process_.get(), deadline);
    output_.Reset();  // if it says more than it may, it hears that nobody listens
    if (!AwaitEnd(deadline)) {
      Kill();
      bool dead = AwaitEnd(Now().monotonic + std::min(patience, kDeathPatience));
      Report({.interrupted = false,
              .found = Failed(absl::StrCat(
                  "it did not end within ", absl::FormatDuration(patience),
                  dead ? " and was killed" : " and cannot be killed: a device or disk does not answer the kernel"))});
      AwaitEnd(absl::InfiniteDuration());
    }
    Report({.interrupted = false, .found = Judge(output, Reap())});
  }

  void Kill() {
    MutexLock lock(mutex_);
    if (!reaped_) ::kill(-pid_, SIGKILL);
  }
  // Only the first time.
  void Report(PreflightFinished finished) {
    MutexLock lock(mutex_);
    if (auto done = std::exchange(done_, nullptr)) done(std::move(finished));
  }
  // Nobody is left to be told.
  void Disown() {
    MutexLock lock(mutex_);
    done_ = nullptr;
  }

 private:
  bool AwaitEnd(absl::Duration deadline) const { return AwaitReadable({{process_.get(), POLLIN, 0}}, deadline); }
  // It has ended. From now on its number may be another's.
  int Reap() {
    MutexLock lock(mutex_);
    ::kill(-pid_, SIGKILL);  // what it has left behind
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

  const pid_t pid_;  // also of its process group
  const UniqueFd process_;
  UniqueFd output_;  // of the thread that follows

  Mutex mutex_;
  bool reaped_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(PreflightFinished)> done_ ABSL_GUARDED_BY(mutex_);  // null: it has been called
};

PreflightRun::PreflightRun(Options options, std::function<void(PreflightFinished)> done)
    : options_(std::move(options)), done_(std::move(done)) {}

PreflightRun::~PreflightRun() {
  if (child_ == nullptr) return;
  child_->Disown();
  child_->Kill();
}

void PreflightRun::Begin() {
  absl::StatusOr<std::shared_ptr<Child>> child = Start();
  if (!child.ok()) return done_({.interrupted = false, .found = Failed(std::string(child.status().message()))});
  child_ = *std::move(child);
  std::thread([child = child_, patience = options_.patience] { child->Follow(patience); }).detach();
}

void PreflightRun::Cancel() {
  if (child_ == nullptr) return;
  child_->Kill();
  child_->Report({.interrupted = true, .found = {}});
}

absl::StatusOr<std::shared_ptr<PreflightRun::Child>> PreflightRun::Start() const {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "create a pipe");
  UniqueFd read(ends[0]), write(ends[1]);
  ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
  // Its own name in lists of processes: it is no rank.
  std::vector<std::string> words = {"llm-preflight", "preflight", "--directory=" + options_.directory,
                                    absl::StrCat("--devices=", options_.devices),
                                    "--device-kind=" + options_.device_kind};
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (const std::string& variable : options_.environment) environment.push_back(const_cast<char*>(variable.c_str()));
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write.get(), 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // The agent's are blocked for its signalfd.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const char* program = options_.trainer_program.c_str();
  int error = ::posix_spawn(&pid, program, &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", options_.trainer_program));
  return std::make_shared<Child>(pid, std::move(read), done_);
}

}  // namespace llmctl::agent
