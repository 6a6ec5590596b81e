#include "worker/agent/host/shim_set.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "worker/agent/host/rank_log.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

constexpr int64_t kLogTailBytes = 64 << 10;
constexpr absl::Duration kRetry = absl::Milliseconds(500);

UniqueFd OpenProcess(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool HasEnded(const UniqueFd& process) {
  pollfd one = {process.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// The message of a record file, if it is there and whole.
template <typename T>
std::optional<T> ReadRecord(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<contract::Envelope> envelope = contract::DecodeLine(absl::StripSuffix(*text, "\n"));
  if (!envelope.ok()) return std::nullopt;
  const T* message = std::get_if<T>(&envelope->message);
  return message == nullptr ? std::nullopt : std::optional<T>(*message);
}

// Field 22 of /proc/<pid>/stat; 0 if there is no such process.
int64_t StartTicks(int64_t pid) {
  absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  size_t after_name = stat.ok() ? stat->rfind(") ") : std::string::npos;
  if (after_name == std::string::npos) return 0;
  std::vector<std::string> fields = absl::StrSplit(stat->substr(after_name + 2), ' ');
  int64_t ticks = 0;
  return fields.size() > 19 && absl::SimpleAtoi(fields[19], &ticks) ? ticks : 0;
}

// Holds the lock of a directory whose shim is gone, so that none can start while we decide.
UniqueFd LockDeadShim(const std::string& directory) {
  UniqueFd lock(::open((directory + "/" + contract::kShimLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return UniqueFd();
}

// A fenced generation must end even where its shim cannot be talked to. SIGTERM has a shim stop its trainer with the
// default grace; a killed shim takes its trainer along.
void KillForeign(const std::string& directory, double grace_seconds) {
  int64_t pid = 0;
  absl::StatusOr<std::string> text = ReadFile(directory + "/" + contract::kShimLockFile);
  if (!text.ok() || !absl::SimpleAtoi(*text, &pid) || pid <= 1) return;
  UniqueFd process = OpenProcess(static_cast<pid_t>(pid));
  // As long as the lock is held, the number is its holder's.
  if (!process.valid() || LockDeadShim(directory).valid()) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), grace_seconds > 0 ? SIGTERM : SIGKILL, nullptr, 0);
}

std::string LastLine(const std::string& path) {
  std::vector<std::string> lines = absl::StrSplit(ReadFile(path).value_or(""), '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : CleanUtf8(lines.back());
}

ExitRecord ToRecord(const contract::Exited& exited, const std::string& directory) {
  ExitRecord record = {.exit_code = exited.exit_code,
                       .signal = exited.signal,
                       .fatal_class = exited.fatal_class,
                       .fatal_message = exited.fatal_message,
                       .stopped_by_agent = exited.stopped_by_agent,
                       .start_failed = exited.start_failed,
                       .log_tail = LogTail(directory, kLogTailBytes)};
  if (record.fatal_class.empty() && !exited.error.empty()) {
    record.fatal_class = "infrastructure";
    record.fatal_message = exited.error;
  }
  return record;
}

}  // namespace

absl::StatusOr<std::string> ShimDirectoryName(const GenerationId& generation, int rank) {
  const std::string& job = generation.job.value();
  bool plain = !job.empty() && job.size() <= 100 && job[0] != '.' &&
               std::all_of(job.begin(), job.end(), [](unsigned char c) {
                 return std::isalnum(c) || c == '-' || c == '_' || c == '.';
               });
  if (!plain) return absl::InvalidArgumentError(absl::StrCat("job id \"", CleanUtf8(job), "\" is no file name"));
  return absl::StrCat(job, "-a", generation.attempt, "-g", generation.generation, "-r", rank);
}

ShimSet::ShimSet(Options options, std::function<void(Event)> sink)
    : options_(std::move(options)), sink_(std::move(sink)) {}

absl::Status ShimSet::FindAll(absl::Duration now) {
  std::vector<std::string> directories;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.shims, error)) {
    directories.push_back(entry.path().string());
  }
  std::sort(directories.begin(), directories.end());
  for (const std::string& directory : directories) {
    absl::StatusOr<std::string> json = ReadFile(directory + "/" + contract::kShimConfigFile);
    if (absl::IsNotFound(json.status())) {
      // The agent died before the directory was complete: nothing can have started in it.
      std::filesystem::remove_all(directory, error);
      continue;
    }
    absl::StatusOr<contract::ShimConfig> config =
        json.ok() ? contract::DecodeShimConfig(*json, contract::UnknownSettings::kIgnore)
                  : absl::StatusOr<contract::ShimConfig>(json.status());
    if (!config.ok()) {
      // Its trainer may be alive: neither to be forgotten nor to be guessed about.
      return absl::FailedPreconditionError(
          absl::StrCat(directory, ": ", config.status().message(),
                       "; another build of llm-worker started a rank there: run that build, or cancel the job, see that "
                       "no llm-shim of it is left, and remove the directory"));
    }
    const contract::Assignment& assignment = config->assignment;
    Key key = {assignment.generation, assignment.rank};
    Shim& shim = shims_[key];
    shim.directory = directory;
    sink_(ShimFound{.generation = key.first,
                    .rank = key.second,
                    .device = assignment.device,
                    .orphan_timeout = absl::Seconds(config->orphan_timeout_seconds)});
    Reach(key, shim, now);
  }
  return absl::OkStatus();
}

void ShimSet::Spawn(const SpawnShim& command) {
  Key key = {command.generation, command.rank};
  absl::StatusOr<std::string> name = ShimDirectoryName(command.generation, command.rank);
  if (!name.ok()) return FailStart(key, "", name.status());
  std::string directory = absl::StrCat(options_.shims, "/", *name);
  absl::Status status = Prepare(command, directory);
  Shim& shim = shims_[key];
  shim.directory = directory;
  if (status.ok()) status = Launch(shim);
  if (!status.ok()) FailStart(key, directory, status);
}

absl::Status ShimSet::Prepare(const SpawnShim& command, const std::string& directory) const {
  for (const std::string& path : command.start.paths) LLM_RETURN_IF_ERROR(options_.roots.Check(path));
  std::map<std::string, std::string> environment;
  for (const std::string& entry : options_.environment) {
    std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    environment.insert(parts);
  }
  for (const auto& [name, value] : command.start.env) environment[name] = value;
  std::string trainer_config = absl::StrCat(directory, "/", contract::kTrainerConfigFile);
  contract::ShimConfig config = {
      .assignment = command.assignment,
      .argv = {options_.trainer_program, "train", "--config=" + trainer_config},
      .orphan_timeout_seconds = absl::ToDoubleSeconds(command.start.orphan_timeout),
      .log_bytes_max = options_.log_bytes_max};
  for (const auto& [name, value] : environment) config.environment.push_back(absl::StrCat(name, "=", value));
  LLM_RETURN_IF_ERROR(MakeDirectories(directory));
  LLM_RETURN_IF_ERROR(WriteFileAtomically(trainer_config, command.start.trainer_config));
  return WriteFileAtomically(absl::StrCat(directory, "/", contract::kShimConfigFile),
                             contract::EncodeShimConfig(config));
}

absl::Status ShimSet::Launch(Shim& shim) const {
  std::string flag = "--dir=" + shim.directory;
  std::string log = absl::StrCat(shim.directory, "/", contract::kShimLogFile);
  std::string program = options_.shim_program;
  char* argv[] = {program.data(), flag.data(), nullptr};
  char* environment[] = {nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ours are blocked for signalfd; a shim begins with none blocked.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = ::posix_spawn(&shim.starter, program.c_str(), &actions, &attributes, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    shim.starter = 0;
    return ErrnoStatus(error, absl::StrCat("start ", program));
  }
  shim.process = OpenProcess(shim.starter);
  return absl::OkStatus();
}

void ShimSet::EndStart(const Key& key, Shim& shim, absl::Duration now) {
  int status = 0;
  ::waitpid(shim.starter, &status, 0);
  shim.starter = 0;
  shim.process.Reset();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Reach(key, shim, now);
  std::string why = LastLine(absl::StrCat(shim.directory, "/", contract::kShimLogFile));
  FailStart(key, shim.directory, absl::InternalError(why.empty() ? "llm-shim failed without a word" : why));
}

void ShimSet::Reach(const Key& key, Shim& shim, absl::Duration now) {
  shim.retry_at.reset();
  if (shim.foreign) return WatchForeign(key, shim, now);
  shim.link.reset();
  if (Connect(shim).ok()) return sink_(ShimConnected{key.first, key.second});
  if (auto record = ReadRecord<contract::Exited>(shim.directory + "/" + contract::kExitFile)) {
    return Exit(key, shim, *record);
  }
  UniqueFd lock = LockDeadShim(shim.directory);
  if (!lock.valid()) {
    // It lives, but has no room or is just about to end.
    shim.retry_at = now + kRetry;
    return;
  }
  // It may have ended between our look at the record and at the lock.
  if (auto record = ReadRecord<contract::Exited>(shim.directory + "/" + contract::kExitFile)) {
    return Exit(key, shim, *record);
  }
  BuryAbandoned(key, shim);
}

absl::Status ShimSet::Connect(Shim& shim) const {
  UniqueFd folder(::open(shim.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoStatus(errno, absl::StrCat("open ", shim.directory));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "create a socket");
  sockaddr_un address = {.sun_family = AF_UNIX};
  // Short whatever the state directory is called: an address holds 107 bytes.
  std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", contract::kShimSocketFile);
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoStatus(errno, absl::StrCat("connect to ", shim.directory, "/", contract::kShimSocketFile));
  }
  shim.link = std::make_unique<contract::LineLink>(std::move(socket));
  return shim.link->Send(contract::Hello{.role = "agent", .oldest_version = contract::kOldestVersion});
}

void ShimSet::Send(const SendToShim& command) {
  auto it = shims_.find({command.generation, command.rank});
  if (it == shims_.end()) return;
  const auto* kill = std::get_if<contract::Kill>(&command.message);
  if (it->second.foreign && kill != nullptr) KillForeign(it->second.directory, kill->grace_seconds);
  if (it->second.foreign || it->second.link == nullptr) return;
  // A broken link shows when it is read.
  (void)it->second.link->Send(command.message);
}

void ShimSet::ReadLink(const Key& key, Shim& shim, absl::Duration now) {
  std::vector<contract::Message> messages;
  absl::Status status = shim.link->Receive(messages);
  for (const std::string& what : shim.link->TakePassedOver()) {
    Log(LogLevel::kInfo, "shim-message-passed-over", {{"job", key.first.job.value()}, {"what", what}});
  }
  for (contract::Message& message : messages) {
    if (const auto* hello = std::get_if<contract::Hello>(&message)) {
      absl::Status spoken = contract::CheckVersion(*hello);
      if (!spoken.ok()) LeaveAlone(key, shim, now, spoken);
    }
    if (shim.foreign) break;
    if (const auto* exited = std::get_if<contract::Exited>(&message)) {
      Exit(key, shim, *exited);
    } else {
      sink_(ShimMessage{key.first, key.second, std::move(message)});
    }
  }
  if (status.ok()) return;
  shim.link.reset();
  sink_(ShimDisconnected{key.first, key.second});
  if (!shim.exited) Reach(key, shim, now);
}

// Keeps the connection, so that the shim does not count as one without an agent.
void ShimSet::LeaveAlone(const Key& key, Shim& shim, absl::Duration now, const absl::Status& why) {
  shim.foreign = true;
  shim.retry_at = now + kRetry;
  Log(LogLevel::kError, "shim-left-alone",
      {{"job", key.first.job.value()},
       {"generation", key.first.generation},
       {"rank", key.second},
       {"why", absl::StrCat(why.message(), ": its trainer runs on without us until it ends or is stopped")}});
  sink_(ShimMessage{key.first, key.second, contract::CaughtUp{}});
}

// Its end shows on disk.
void ShimSet::WatchForeign(const Key& key, Shim& shim, absl::Duration now) {
  std::string exit_file = shim.directory + "/" + contract::kExitFile;
  // With an agent it would wait for a release that we do not know how to give.
  if (::access(exit_file.c_str(), F_OK) == 0) shim.link.reset();
  UniqueFd lock = LockDeadShim(shim.directory);
  if (!lock.valid()) {
    shim.retry_at = now + kRetry;
    return;
  }
  shim.link.reset();
  if (auto record = ReadRecord<contract::Exited>(exit_file)) return Exit(key, shim, *record);
  BuryAbandoned(key, shim);
}

void ShimSet::BuryAbandoned(const Key& key, Shim& shim) {
  auto started = ReadRecord<contract::Started>(shim.directory + "/" + contract::kStartedFile);
  if (started.has_value() && started->pid > 0 && StartTicks(started->pid) == started->start_ticks) {
    // The kernel kills the trainer with its shim; what the trainer had started is left to us.
    shim.process = OpenProcess(static_cast<pid_t>(started->pid));
    ::kill(static_cast<pid_t>(-started->pid), SIGKILL);
    if (shim.process.valid()) return;  // Handle() goes on when it has ended
  }
  FinishBurial(key, shim);
}

void ShimSet::FinishBurial(const Key& key, Shim& shim) {
  shim.process.Reset();
  bool ran = ReadRecord<contract::Started>(shim.directory + "/" + contract::kStartedFile).has_value();
  contract::Exited exited = {.signal = ran ? SIGKILL : 0,
                             .start_failed = !ran,
                             .error = ran ? "the shim was killed, and its trainer with it"
                                          : "the agent ended before the shim had started its trainer"};
  // On disk, so that no shim starts a trainer here after we said that there is none.
  absl::StatusOr<std::string> line = contract::EncodeLine({.message = exited});
  if (line.ok()) {
    (void)WriteFileAtomically(absl::StrCat(shim.directory, "/", contract::kExitFile), absl::StrCat(*line, "\n"));
  }
  Exit(key, shim, exited);
}

void ShimSet::Exit(const Key& key, Shim& shim, const contract::Exited& exited) {
  if (shim.exited) return;
  shim.exited = true;
  sink_(RankExited{key.first, key.second, ToRecord(exited, shim.directory)});
}

void ShimSet::FailStart(const Key& key, const std::string& directory, const absl::Status& status) {
  bool forbidden = absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status);
  ExitRecord record = {.fatal_class = forbidden ? "config" : "infrastructure",
                       .fatal_message = absl::StrCat("start of rank ", key.second, ": ", status.message()),
                       .start_failed = true};
  auto it = shims_.find(key);
  if (it != shims_.end()) it->second.exited = true;
  sink_(RankExited{key.first, key.second, std::move(record)});
}

void ShimSet::Retire(const RetireShim& command) {
  auto it = shims_.find({command.generation, command.rank});
  if (it == shims_.end()) return;
  std::error_code error;
  std::filesystem::path from = it->second.directory;
  if (!from.empty()) {
    std::filesystem::path to = std::filesystem::path(options_.ended) / from.filename();
    std::filesystem::remove_all(to, error);
    std::filesystem::rename(from, to, error);
  }
  shims_.erase(it);
  TrimEnded();
}

void ShimSet::TrimEnded() const {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> ended;
  for (const auto& entry : std::filesystem::directory_iterator(options_.ended, error)) {
    ended.emplace_back(entry.last_write_time(error), entry.path());
  }
  if (ended.size() <= options_.ended_max) return;
  std::sort(ended.begin(), ended.end());
  for (size_t i = 0; i + options_.ended_max < ended.size(); ++i) std::filesystem::remove_all(ended[i].second, error);
}

std::vector<pollfd> ShimSet::Descriptors() const {
  std::vector<pollfd> out;
  for (const auto& [key, shim] : shims_) {
    if (shim.process.valid()) out.push_back({shim.process.get(), POLLIN, 0});
    if (shim.link == nullptr) continue;
    short events = shim.link->WantsWrite() ? POLLIN | POLLOUT : POLLIN;
    out.push_back({shim.link->fd(), events, 0});
  }
  return out;
}

void ShimSet::Handle(const pollfd& ready, absl::Duration now) {
  for (auto& [key, shim] : shims_) {
    if (shim.process.valid() && shim.process.get() == ready.fd) {
      // The number may have been another descriptor's when it was polled.
      if (!HasEnded(shim.process)) return;
      return shim.starter != 0 ? EndStart(key, shim, now) : FinishBurial(key, shim);
    }
    if (shim.link == nullptr || shim.link->fd() != ready.fd) continue;
    if (ready.revents & POLLOUT) (void)shim.link->Flush();
    if (ready.revents & ~POLLOUT) ReadLink(key, shim, now);
    return;
  }
}

std::optional<absl::Duration> ShimSet::NextDeadline() const {
  std::optional<absl::Duration> next;
  for (const auto& [key, shim] : shims_) {
    if (shim.retry_at.has_value() && (!next.has_value() || *shim.retry_at < *next)) next = shim.retry_at;
  }
  return next;
}

void ShimSet::Tick(absl::Duration now) {
  for (auto& [key, shim] : shims_) {
    if (shim.retry_at.has_value() && *shim.retry_at <= now) Reach(key, shim, now);
  }
}

absl::StatusOr<std::string> ShimSet::LogDirectory(const GenerationId& generation, int rank) const {
  LLM_ASSIGN_OR_RETURN(std::string name, ShimDirectoryName(generation, rank));
  for (const std::string& parent : {options_.shims, options_.ended}) {
    std::string directory = absl::StrCat(parent, "/", name);
    if (std::filesystem::is_directory(directory)) return directory;
  }
  return absl::NotFoundError(absl::StrCat("the log of rank ", rank, " in attempt ", generation.attempt,
                                          " is gone: the logs of the ", options_.ended_max,
                                          " ranks that ended last are kept"));
}

bool ShimSet::IsLive(const GenerationId& generation, int rank) const {
  auto it = shims_.find({generation, rank});
  return it != shims_.end() && !it->second.exited;
}

}  // namespace llmctl::agent
