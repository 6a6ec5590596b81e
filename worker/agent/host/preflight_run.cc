#include "worker/agent/host/preflight_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/contract/preflight.h"

namespace llmctl::agent {
namespace {

// Seconds of work, at the lowest priority on a host that may be busy with other things. A device that hangs, hangs for
// longer.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr size_t kOutputBytesMost = 256 << 10;

contract::Preflight Failed(std::string why) {
  return {.passed = false, .failure = std::move(why), .checks = {}};
}

// All that `fd` gives until its end; stops early at the deadline.
std::string ReadAll(int fd, absl::Duration deadline) {
  std::string text;
  char buffer[4096];
  while (text.size() < kOutputBytesMost) {
    pollfd ready = {fd, POLLIN, 0};
    absl::Duration left = deadline - Now().monotonic;
    if (left <= absl::ZeroDuration()) break;
    if (::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left) + 1)) <= 0) continue;
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

contract::Preflight Judge(const std::string& output, int wait_status, bool late) {
  if (late) return Failed(absl::StrCat("it did not end within ", absl::FormatDuration(kPatience), " and was killed"));
  if (WIFSIGNALED(wait_status)) {
    return Failed(absl::StrCat("llm-trainer preflight was killed by signal ", WTERMSIG(wait_status)));
  }
  absl::StatusOr<contract::Preflight> found = contract::DecodePreflight(output);
  if (found.ok()) return *std::move(found);
  return Failed(absl::StrCat("llm-trainer preflight ended with code ", WEXITSTATUS(wait_status), ": ",
                             found.status().message()));
}

}  // namespace

PreflightRun::PreflightRun(Options options, std::function<void(PreflightFinished)> done)
    : options_(std::move(options)), done_(std::move(done)) {}

PreflightRun::~PreflightRun() {
  Kill();
  if (thread_.joinable()) thread_.join();
}

void PreflightRun::Begin() {
  if (thread_.joinable()) thread_.join();
  {
    MutexLock lock(mutex_);
    cancelled_ = false;
  }
  absl::StatusOr<Child> child = Start();
  if (!child.ok()) {
    done_({.interrupted = false, .found = Failed(std::string(child.status().message()))});
    return;
  }
  thread_ = std::thread([this, child = *std::move(child)] { done_(Follow(child)); });
}

absl::StatusOr<PreflightRun::Child> PreflightRun::Start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "create a pipe");
  UniqueFd read(ends[0]), write(ends[1]);
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
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const char* program = options_.trainer_program.c_str();
  int error = ::posix_spawn(&pid, program, &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", options_.trainer_program));
  MutexLock lock(mutex_);
  process_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return Child{pid, std::move(read)};
}

PreflightFinished PreflightRun::Follow(const Child& child) {
  absl::Duration deadline = Now().monotonic + kPatience;
  std::string output = ReadAll(child.output.get(), deadline);
  bool late = Now().monotonic >= deadline;
  if (late) Kill();
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  MutexLock lock(mutex_);
  process_.Reset();
  if (cancelled_) return {.interrupted = true, .found = {}};
  return {.interrupted = false, .found = Judge(output, status, late)};
}

void PreflightRun::Cancel() {
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
  }
  Kill();
}

void PreflightRun::Kill() {
  MutexLock lock(mutex_);
  if (process_.valid()) ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

}  // namespace llmctl::agent
