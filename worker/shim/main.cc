// llm-shim --dir=DIR: runs the trainer that DIR/shim.json describes and keeps its record in DIR; where there is only a
// DIR/standby.json, a trainer that waits for a job.
//
// Returns to its caller, with 0, once the socket in DIR listens; a daemon of its own session goes on from there.
// Otherwise says on standard error why it cannot.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/shown_command_line.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "worker/contract/shim_config.h"
#include "worker/shim/shim.h"

namespace llmctl::shim {
namespace {

// One shim per directory, and none where a trainer's end is on record already.
absl::StatusOr<UniqueFd> LockDirectory() {
  UniqueFd lock(::open(contract::kShimLockFile, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoStatus(errno, "open lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError("another shim or an agent holds the lock of this directory");
  }
  if (::access(contract::kExitFile, F_OK) == 0) {
    return absl::FailedPreconditionError("exit.json exists: the trainer of this directory has ended");
  }
  // Its generation may have gone on without it, and its log's offsets are known to nobody.
  if (::access(contract::kStartedFile, F_OK) == 0) {
    return absl::FailedPreconditionError("started.json exists: a shim that was killed has run the trainer here");
  }
  return lock;
}

// By a relative name: the directory's full path may be longer than a socket address holds.
absl::StatusOr<UniqueFd> Listen() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "create a socket");
  sockaddr_un address = {.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, contract::kShimSocketFile, sizeof address.sun_path - 1);
  ::unlink(contract::kShimSocketFile);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoStatus(errno, "bind the socket");
  }
  if (::listen(socket.get(), /*backlog=*/8) != 0) return ErrnoStatus(errno, "listen on the socket");
  return socket;
}

absl::StatusOr<UniqueFd> WatchSignals() {
  // A starter that ignores SIGCHLD hands that on, and the trainer's end would never be told.
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return ErrnoStatus(errno, "create a signalfd");
  return signals;
}

// Whatever our starter had open is none of ours or the trainer's. What it had not must not become a socket of ours:
// the trainer's standard streams are put in these places.
void SettleDescriptors() {
  while (true) {
    int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0 || fd > STDERR_FILENO) break;
  }
  ::close_range(STDERR_FILENO + 1, ~0u, 0);
}

std::string CurrentDirectory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

// What to run: a rank's trainer, or one that waits.
struct Charge {
  std::optional<contract::ShimConfig> rank;
  contract::StandbyConfig standby;
};

absl::StatusOr<Charge> ReadCharge() {
  Charge charge;
  absl::StatusOr<std::string> json = ReadFile(contract::kShimConfigFile);
  if (absl::IsNotFound(json.status()) && ::access(contract::kStandbyConfigFile, F_OK) == 0) {
    LLM_ASSIGN_OR_RETURN(std::string standby, ReadFile(contract::kStandbyConfigFile));
    LLM_ASSIGN_OR_RETURN(charge.standby, contract::DecodeStandbyConfig(standby));
    return charge;
  }
  LLM_RETURN_IF_ERROR(json.status());
  LLM_ASSIGN_OR_RETURN(charge.rank, contract::DecodeShimConfig(*json));
  return charge;
}

absl::Status Run(const char* directory, ShownCommandLine& shown) {
  if (::chdir(directory) != 0) return ErrnoStatus(errno, "enter the directory");
  LLM_ASSIGN_OR_RETURN(Charge charge, ReadCharge());
  LLM_ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory());
  LLM_ASSIGN_OR_RETURN(UniqueFd listener, Listen());
  LLM_ASSIGN_OR_RETURN(UniqueFd signals, WatchSignals());
  pid_t child = ::fork();
  if (child < 0) return ErrnoStatus(errno, "fork");
  if (child > 0) return absl::OkStatus();
  ::setsid();
  // For people and for whoever must kill a shim that hangs; the lock itself says whether it lives.
  ::dprintf(lock.get(), "%d\n", static_cast<int>(::getpid()));
  Shim::Doors doors = {.listener = std::move(listener), .signals = std::move(signals)};
  if (charge.rank.has_value()) {
    Shim(*std::move(charge.rank), std::move(doors)).Run();
  } else {
    // Its directory has the rank's name by then.
    auto on_taken = [&shown] { shown.Replace({"llm-shim", absl::StrCat("--dir=", CurrentDirectory())}); };
    Shim(charge.standby, std::move(doors), on_taken).Run();
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace llmctl::shim

int main(int argc, char** argv) {
  absl::string_view argument = argc == 2 ? argv[1] : "";
  if (!absl::ConsumePrefix(&argument, "--dir=") || argument.empty()) {
    std::fprintf(stderr, "usage: llm-shim --dir=DIR\n");
    return 2;
  }
  llmctl::shim::SettleDescriptors();
  llmctl::ShownCommandLine shown(argc, argv);
  const std::string directory(argument);
  absl::Status status = llmctl::shim::Run(directory.c_str(), shown);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(llmctl::Annotate(status, "llm-shim --dir=", directory).message()).c_str());
  return 1;
}
