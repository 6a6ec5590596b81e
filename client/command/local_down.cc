#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/command/verbs.h"
#include "client/command/watching.h"
#include "client/local/readiness.h"
#include "client/local/shims.h"
#include "client/output/progress_view.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

constexpr absl::Duration kCoordinatorPatience = absl::Seconds(3);
constexpr absl::Duration kJobEndPatience = absl::Seconds(30);
constexpr absl::Duration kSupervisorPatience = absl::Seconds(15);
constexpr absl::Duration kShimPatience = absl::Seconds(3);

absl::StatusOr<std::vector<v1::Job>> UnfinishedJobs(Cluster& cluster) {
  v1::ListJobsRequest request;
  for (int number = v1::JOB_PHASE_UNSPECIFIED + 1; v1::JobPhase_IsValid(number); ++number) {
    auto phase = static_cast<v1::JobPhase>(number);
    if (!HasEnded(phase)) request.add_phases(phase);
  }
  std::vector<v1::Job> jobs;
  do {
    LLM_ASSIGN_OR_RETURN(v1::ListJobsReply page, cluster.ListJobs(request));
    jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

std::string Names(const std::vector<v1::Job>& jobs) {
  return absl::StrJoin(jobs, ", ", [](std::string* out, const v1::Job& job) {
    absl::StrAppend(out, job.id(), " ", job.name(), " (", PhaseName(job.phase()), ")");
  });
}

// Whether the person at the terminal agrees; where nobody can be asked, the command itself is the answer.
bool Agrees(const std::vector<v1::Job>& jobs, const LocalOptions& options, Session& session) {
  if (options.yes || !session.terminal || ::isatty(STDIN_FILENO) == 0) return true;
  session.out << "This cancels " << Names(jobs) << ". Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

absl::Status CancelJobs(Cluster& cluster, const std::vector<v1::Job>& jobs, Session& session) {
  for (const v1::Job& job : jobs) {
    v1::CancelJobRequest request;
    request.set_id(job.id());
    request.set_reason("llmctl local down");
    LLM_RETURN_IF_ERROR(Annotate(cluster.Cancel(request).status(), "cancel ", job.id()));
  }
  WatchCallbacks silent{[](const v1::Job&) {}, [](const std::string&) {}};
  for (const v1::Job& job : jobs) {
    absl::StatusOr<v1::Job> ended = WatchUntilEnded(cluster, job.id(), kJobEndPatience, silent);
    LLM_RETURN_IF_ERROR(Annotate(ended.status(), "cancel ", job.id()));
    session.out << "cancelled " << job.id() << " " << job.name() << "\n";
  }
  return absl::OkStatus();
}

absl::Status StopSupervisor(const ClusterDirectory& directory, const LocalState& state) {
  // The lock proves that the supervisor lives, so the pid is its own and not a successor's.
  if (::kill(static_cast<pid_t>(state.pid), SIGTERM) != 0) {
    return ErrnoStatus(errno, absl::StrCat("stop the supervisor, pid ", state.pid));
  }
  const absl::Duration deadline = Now().monotonic + kSupervisorPatience;
  while (IsLocked(directory.lock_file())) {
    if (Now().monotonic > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("stop the supervisor, pid ", state.pid, ": it still runs after ",
                                                      absl::FormatDuration(kSupervisorPatience), "; see ",
                                                      directory.log_file("supervisor")));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::OkStatus();
}

// Trainers outlive agents; without --keep-jobs none may be left. Those are given time, told to stop, then killed.
absl::Status RemoveShims(const ClusterDirectory& directory, Session& session) {
  std::vector<pid_t> left = AwaitNoShims(directory.path(), kShimPatience);
  if (left.empty()) return absl::OkStatus();
  session.err << "stopping " << left.size() << " trainers that were left over\n";
  for (int signal : {SIGTERM, SIGKILL}) {
    for (pid_t shim : left) ::kill(shim, signal);
    left = AwaitNoShims(directory.path(), kShimPatience);
    if (left.empty()) return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("take down the local cluster: expected no shims to be left, found pids ",
                                          absl::StrJoin(left, ", ")));
}

void SayWhatGoesOn(const ClusterDirectory& directory, Session& session) {
  size_t shims = FindShims(directory.path()).size();
  if (shims == 0) return;
  session.out << shims << (shims == 1 ? " trainer goes on" : " trainers go on")
              << " until the job's orphanTimeout; `llmctl local up` takes over again\n";
}

}  // namespace

absl::StatusOr<ExitCode> LocalDown(const LocalOptions& options, Session& session) {
  ClusterDirectory directory(options.directory);
  absl::StatusOr<LocalState> state = ReadLocalState(directory);
  if (absl::IsNotFound(state.status()) && !IsLocked(directory.lock_file())) {
    session.out << "no local cluster is up in " << directory.path() << "\n";
    if (!options.keep_jobs) LLM_RETURN_IF_ERROR(RemoveShims(directory, session));
    return ExitCode::kOk;
  }
  LLM_RETURN_IF_ERROR(state.status());
  std::unique_ptr<Cluster> cluster = ConnectLocal(directory, kCoordinatorPatience);
  absl::StatusOr<std::vector<v1::Job>> jobs = UnfinishedJobs(*cluster);
  if (!jobs.ok()) {
    session.err << "llmctl: jobs are not cancelled, only stopped: " << jobs.status().message() << "\n";
  } else if (!options.keep_jobs && !jobs->empty()) {
    if (!Agrees(*jobs, options, session)) return ExitCode::kConflict;
    absl::Status cancelled = CancelJobs(*cluster, *jobs, session);
    if (!cancelled.ok()) session.err << "llmctl: " << cancelled.message() << "\n";
  }
  // The coordinator's own stop waits for open connections.
  cluster.reset();
  LLM_RETURN_IF_ERROR(StopSupervisor(directory, *state));
  if (!options.keep_jobs) LLM_RETURN_IF_ERROR(RemoveShims(directory, session));
  session.out << "the local cluster in " << directory.path() << " is down\n";
  if (options.keep_jobs) SayWhatGoesOn(directory, session);
  return ExitCode::kOk;
}

}  // namespace llmctl::client
