#include "worker/agent/host/shim_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/status.h"
#include "worker/agent/host/rank_log.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

UniqueFd OpenProcess(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

std::string LastLine(const std::string& path) {
  std::vector<std::string> lines = absl::StrSplit(ReadFile(path).value_or(""), '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : CleanUtf8(lines.back());
}

std::string LogOf(const std::string& directory) { return absl::StrCat(directory, "/", contract::kShimLogFile); }

}  // namespace

int64_t StartTicks(int64_t pid) {
  absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  size_t after_name = stat.ok() ? stat->rfind(") ") : std::string::npos;
  if (after_name == std::string::npos) return 0;
  std::vector<std::string> fields = absl::StrSplit(stat->substr(after_name + 2), ' ');
  int64_t ticks = 0;
  return fields.size() > 19 && absl::SimpleAtoi(fields[19], &ticks) ? ticks : 0;
}

absl::StatusOr<StartingShim> LaunchShim(const std::string& program, const std::string& directory) {
  std::string name = program, flag = "--dir=" + directory;
  char* argv[] = {name.data(), flag.data(), nullptr};
  char* environment[] = {nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, LogOf(directory).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ours are blocked for signalfd; a shim begins with none blocked.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  StartingShim shim;
  int error = ::posix_spawn(&shim.pid, program.c_str(), &actions, &attributes, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", program));
  shim.process = OpenProcess(shim.pid);
  return shim;
}

absl::Status EndLaunch(pid_t pid, const std::string& directory) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  std::string why = LastLine(LogOf(directory));
  return absl::InternalError(why.empty() ? "llm-shim failed without a word" : why);
}

absl::StatusOr<std::unique_ptr<contract::LineLink>> ConnectToShim(const std::string& directory) {
  UniqueFd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoStatus(errno, absl::StrCat("open ", directory));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "create a socket");
  sockaddr_un address = {.sun_family = AF_UNIX};
  // Short whatever the state directory is called: an address holds 107 bytes.
  std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", contract::kShimSocketFile);
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoStatus(errno, absl::StrCat("connect to ", directory, "/", contract::kShimSocketFile));
  }
  auto link = std::make_unique<contract::LineLink>(std::move(socket));
  LLM_RETURN_IF_ERROR(link->Send(contract::Hello{.role = "agent", .oldest_version = contract::kOldestVersion}));
  return link;
}

UniqueFd LockDeadShim(const std::string& directory) {
  UniqueFd lock(::open((directory + "/" + contract::kShimLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return UniqueFd();
}

UniqueFd KillAbandonedTrainer(const std::string& directory) {
  auto started = ReadRecord<contract::Started>(directory + "/" + contract::kStartedFile);
  bool there = started.has_value() && started->pid > 0 && StartTicks(started->pid) == started->start_ticks;
  if (!there) return UniqueFd();
  UniqueFd process = OpenProcess(static_cast<pid_t>(started->pid));
  ::kill(static_cast<pid_t>(-started->pid), SIGKILL);
  return process;
}

void KillForeignShim(const std::string& directory, double grace_seconds) {
  int64_t pid = 0;
  absl::StatusOr<std::string> text = ReadFile(directory + "/" + contract::kShimLockFile);
  if (!text.ok() || !absl::SimpleAtoi(*text, &pid) || pid <= 1) return;
  UniqueFd process = OpenProcess(static_cast<pid_t>(pid));
  // As long as the lock is held, the number is its holder's.
  if (!process.valid() || LockDeadShim(directory).valid()) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), grace_seconds > 0 ? SIGTERM : SIGKILL, nullptr, 0);
}

bool HasEnded(const UniqueFd& process) {
  pollfd one = {process.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace llmctl::agent
