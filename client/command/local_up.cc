#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "client/command/sibling.h"
#include "client/command/verbs.h"
#include "client/local/daemon_commands.h"
#include "client/local/readiness.h"
#include "client/local/supervisor.h"
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

constexpr absl::Duration kReadyPatience = absl::Seconds(30);

absl::StatusOr<ExitCode> Report(const ClusterDirectory& directory, bool was_up, Session& session) {
  LLM_ASSIGN_OR_RETURN(LocalState state, ReadLocalState(directory));
  if (session.format != Format::kTable) return LocalStatus({.directory = directory.path()}, session);
  session.out << "a coordinator and " << state.workers << (state.workers == 1 ? " worker " : " workers ")
              << (was_up ? "are up already" : "are up") << " in " << directory.path()
              << "\n  llmctl commands find them from the folder that holds .llmctl; elsewhere: --coordinator=@"
              << directory.coordinator_address_file() << "\n";
  return ExitCode::kOk;
}

// Somebody else holds the lock: fine if it is the same cluster.
absl::StatusOr<ExitCode> JoinRunning(const ClusterDirectory& directory, const LocalOptions& options,
                                     Session& session) {
  LLM_RETURN_IF_ERROR(AwaitReady(directory, kReadyPatience));
  LLM_ASSIGN_OR_RETURN(LocalState state, ReadLocalState(directory));
  if (state.workers != options.workers || state.devices_per_worker != options.devices_per_worker) {
    return absl::FailedPreconditionError(
        absl::StrCat("bring up a local cluster in ", directory.path(), ": expected ", options.workers,
                     " workers with ", options.devices_per_worker, " devices, found one up with ", state.workers,
                     " and ", state.devices_per_worker, "; `llmctl local down` first"));
  }
  return Report(directory, /*was_up=*/true, session);
}

// Addresses of an earlier run would be taken for those of this one.
void RemoveStaleFiles(const ClusterDirectory& directory, const std::vector<DaemonCommand>& commands) {
  ::unlink(directory.coordinator_address_file().c_str());
  ::unlink(directory.state_file().c_str());
  for (const DaemonCommand& command : commands) ::unlink(directory.metrics_address_file(command.name).c_str());
}

// Cuts the process off from the terminal and the session that started it.
absl::Status Daemonize(const ClusterDirectory& directory) {
  std::string log = directory.log_file("supervisor");
  int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (out < 0 || null < 0) return ErrnoStatus(errno, absl::StrCat("open ", log));
  ::setsid();
  ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  return ::chdir(directory.path().c_str()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "chdir");
}

int RunSupervisor(const ClusterDirectory& directory, const LocalOptions& options,
                  std::vector<DaemonCommand> commands) {
  LocalState about;
  about.workers = options.workers;
  about.devices_per_worker = options.devices_per_worker;
  about.start_time = absl::ToUnixSeconds(Now().wall);
  absl::Status status = Supervisor(directory, about, std::move(commands)).Run();
  if (!status.ok()) std::cerr << "supervisor: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}

// The supervisor becomes a child that outlives us.
absl::StatusOr<ExitCode> UpInBackground(const ClusterDirectory& directory, const LocalOptions& options,
                                        std::vector<DaemonCommand> commands, Session& session) {
  session.out.flush();
  pid_t supervisor = ::fork();
  if (supervisor < 0) return ErrnoStatus(errno, "fork the supervisor");
  if (supervisor == 0) {
    if (!Daemonize(directory).ok()) ::_exit(1);
    ::_exit(RunSupervisor(directory, options, std::move(commands)));
  }
  absl::Status ready = AwaitReady(directory, kReadyPatience);
  if (ready.ok()) return Report(directory, /*was_up=*/false, session);
  ::kill(supervisor, SIGTERM);
  ::waitpid(supervisor, nullptr, 0);
  return ready;
}

// The supervisor is this process; a child tells when all is up, or ends us when it will not be.
absl::StatusOr<ExitCode> UpInForeground(const ClusterDirectory& directory, const LocalOptions& options,
                                        std::vector<DaemonCommand> commands, std::optional<FileLock> lock,
                                        Session& session) {
  session.out.flush();
  pid_t self = ::getpid();
  pid_t reporter = ::fork();
  if (reporter < 0) return ErrnoStatus(errno, "fork");
  if (reporter == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    lock.reset();
    absl::Status ready = AwaitReady(directory, kReadyPatience);
    if (ready.ok()) ready = Report(directory, /*was_up=*/false, session).status();
    session.out.flush();
    if (!ready.ok()) {
      session.err << "llmctl: " << ready.message() << std::endl;
      ::kill(self, SIGTERM);
    }
    ::_exit(0);
  }
  return RunSupervisor(directory, options, std::move(commands)) == 0 ? ExitCode::kOk : ExitCode::kOther;
}

}  // namespace

absl::StatusOr<ExitCode> LocalUp(const LocalOptions& options, Session& session) {
  ClusterDirectory directory(options.directory);
  LLM_RETURN_IF_ERROR(MakeDirectories(directory.log_directory()));
  absl::StatusOr<FileLock> acquired = FileLock::Acquire(directory.lock_file());
  if (absl::IsFailedPrecondition(acquired.status())) return JoinRunning(directory, options, session);
  LLM_RETURN_IF_ERROR(acquired.status());
  std::optional<FileLock> lock(*std::move(acquired));

  DaemonPrograms programs;
  LLM_ASSIGN_OR_RETURN(programs.coordinator, FindSibling("llm-coordinator"));
  LLM_ASSIGN_OR_RETURN(programs.worker, FindSibling("llm-worker"));
  ClusterShape shape{.workers = options.workers,
                     .devices_per_worker = options.devices_per_worker,
                     .lease = options.lease,
                     .cores = static_cast<int>(std::thread::hardware_concurrency())};
  std::vector<DaemonCommand> commands = DaemonCommands(directory, shape, programs);
  RemoveStaleFiles(directory, commands);
  if (options.foreground) {
    return UpInForeground(directory, options, std::move(commands), std::move(lock), session);
  }
  return UpInBackground(directory, options, std::move(commands), session);
}

}  // namespace llmctl::client
