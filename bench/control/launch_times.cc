#include "bench/control/launch_times.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "llmctl/v1/jobs.grpc.pb.h"

namespace llmctl::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr char kLog[] = "stdout.log";

std::chrono::system_clock::time_point Deadline() {
  return std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience);
}

absl::Status ToAbsl(const grpc::Status& status, absl::string_view what) {
  return Annotate(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()), what);
}

// What happens to one file or folder from Watch() on.
class FileWatch {
 public:
  static absl::StatusOr<FileWatch> Watch(const std::vector<std::string>& paths, uint32_t mask) {
    FileWatch watch;
    watch.events_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    for (const std::string& path : paths) {
      if (::inotify_add_watch(watch.events_.get(), path.c_str(), mask) < 0) {
        return ErrnoStatus(errno, absl::StrCat("watch ", path));
      }
    }
    return watch;
  }

  // Returns after at least one event; of folders, one about a file of this name.
  absl::Status Await(absl::string_view file = "") const {
    pollfd one = {events_.get(), POLLIN, 0};
    while (::poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) > 0) {
      char events[4096];
      ssize_t bytes = ::read(events_.get(), events, sizeof events);
      for (ssize_t at = 0; at < bytes;) {
        inotify_event event;
        std::memcpy(&event, events + at, sizeof event);
        const char* name = event.len == 0 ? "" : events + at + sizeof event;
        if (file == name) return absl::OkStatus();
        at += static_cast<ssize_t>(sizeof event) + event.len;
      }
    }
    return absl::DeadlineExceededError("nothing happened to a file that was watched");
  }
  // What has happened so far.
  void Forget() const {
    char events[4096];
    while (::read(events_.get(), events, sizeof events) > 0) {
    }
  }

 private:
  UniqueFd events_;
};

absl::Status AwaitContent(const std::string& directory, const std::string& file) {
  LLM_ASSIGN_OR_RETURN(FileWatch changes, FileWatch::Watch({directory}, IN_MODIFY));
  std::string path = directory + "/" + file;
  struct stat found = {};
  while (::stat(path.c_str(), &found) != 0 || found.st_size == 0) LLM_RETURN_IF_ERROR(changes.Await(file));
  return absl::OkStatus();
}

// From the start of the program to its first byte, as the agent starts it.
absl::StatusOr<absl::Duration> TimeBareStart(const std::string& trainer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make a pipe");
  UniqueFd output(ends[0]), input(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  std::string program = trainer;
  char verb[] = "version", threads[] = "OMP_NUM_THREADS=1", waiting[] = "OMP_WAIT_POLICY=passive";
  char* argv[] = {program.data(), verb, nullptr};
  char* environment[] = {threads, waiting, nullptr};
  pid_t pid = 0;
  absl::Duration began = Now().monotonic;
  int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", trainer));
  input.Reset();
  char first = 0;
  ssize_t got = ::read(output.get(), &first, 1);
  absl::Duration took = Now().monotonic - began;
  ::waitpid(pid, nullptr, 0);
  if (got != 1) return absl::UnavailableError(absl::StrCat(trainer, " version printed nothing"));
  return took;
}

class Launcher {
 public:
  Launcher(const LaunchOptions& options, FileWatch program)
      : options_(options),
        program_(std::move(program)),
        channel_(grpc::CreateChannel(options.coordinator, grpc::InsecureChannelCredentials())),
        jobs_(v1::Jobs::NewStub(channel_)) {}

  absl::Status Connect() {
    if (channel_->WaitForConnected(Deadline())) return absl::OkStatus();
    return absl::UnavailableError("the coordinator does not answer");
  }

  absl::Status LaunchOnStandby(const FileWatch& standbys, LaunchTimes& times) {
    absl::Duration began = Now().monotonic;
    LLM_ASSIGN_OR_RETURN(std::string id, Submit());
    LLM_RETURN_IF_ERROR(Annotate(standbys.Await(kLog), "await the first line of job ", id));
    times.first_line.push_back(Now().monotonic - began);
    return End(id);
  }

  absl::Status LaunchOne(LaunchTimes& times) {
    program_.Forget();
    absl::Duration began = Now().monotonic;
    LLM_ASSIGN_OR_RETURN(std::string id, Submit());
    LLM_RETURN_IF_ERROR(Annotate(program_.Await(), "await the execve of job ", id));
    times.execve.push_back(Now().monotonic - began);
    LLM_RETURN_IF_ERROR(Annotate(AwaitContent(absl::StrCat(options_.shims, "/", id, "-a1-g1-r0"), kLog),
                                 "await the first line of job ", id));
    times.first_line.push_back(Now().monotonic - began);
    return End(id);
  }

 private:
  absl::StatusOr<std::string> Submit() {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    v1::SubmitRequest request;
    *request.mutable_spec() = options_.spec;
    v1::SubmitReply reply;
    LLM_RETURN_IF_ERROR(ToAbsl(jobs_->Submit(&context, request, &reply), "submit"));
    return reply.job().id();
  }

  // Cancelled, and its host has said that nothing of it is left.
  absl::Status End(const std::string& id) {
    grpc::ClientContext context, watching;
    context.set_deadline(Deadline());
    watching.set_deadline(Deadline());
    v1::CancelJobRequest cancel;
    cancel.set_id(id);
    v1::JobReply reply;
    LLM_RETURN_IF_ERROR(ToAbsl(jobs_->Cancel(&context, cancel, &reply), absl::StrCat("cancel ", id)));
    v1::WatchJobRequest watch;
    watch.set_id(id);
    std::unique_ptr<grpc::ClientReader<v1::Job>> stream = jobs_->Watch(&watching, watch);
    v1::Job job;
    while (stream->Read(&job)) {
    }
    LLM_RETURN_IF_ERROR(ToAbsl(stream->Finish(), absl::StrCat("watch ", id)));
    if (job.phase() == v1::JOB_PHASE_CANCELLED) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " was cancelled and ended so: ", job.reason()));
  }

  const LaunchOptions& options_;
  const FileWatch program_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Jobs::Stub> jobs_;
};

}  // namespace

absl::StatusOr<LaunchTimes> MeasureLaunches(const LaunchOptions& options) {
  LLM_ASSIGN_OR_RETURN(FileWatch program, FileWatch::Watch({options.trainer}, IN_OPEN));
  Launcher launcher(options, std::move(program));
  LLM_RETURN_IF_ERROR(launcher.Connect());
  LaunchTimes times, warmup;
  if (!options.standbys.empty()) {
    std::vector<std::string> directories;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options.standbys, error)) {
      directories.push_back(entry.path().string());
    }
    LLM_ASSIGN_OR_RETURN(FileWatch standbys, FileWatch::Watch(directories, IN_MODIFY));
    LLM_RETURN_IF_ERROR(launcher.LaunchOnStandby(standbys, times));
    return times;
  }
  LLM_RETURN_IF_ERROR(launcher.LaunchOne(warmup));
  for (int i = 0; i < options.jobs; ++i) {
    LLM_ASSIGN_OR_RETURN(absl::Duration bare, TimeBareStart(options.trainer));
    times.bare_start.push_back(bare);
    LLM_RETURN_IF_ERROR(launcher.LaunchOne(times));
  }
  return times;
}

}  // namespace llmctl::bench
