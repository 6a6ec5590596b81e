#include "worker/agent/host/shim_set.h"

#include <signal.h>
#include <stdio.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "worker/agent/host/rank_log.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

constexpr int64_t kLogTailBytes = 64 << 10;
constexpr absl::Duration kRetry = absl::Milliseconds(500);

// It was to be a rank's and cannot.
void Discard(StandbySet::Taken& standby) {
  (void)standby.link->Send(contract::Kill{});
  std::error_code error;
  std::filesystem::remove_all(standby.directory, error);
}

// What its files take of the disk, about.
int64_t BytesIn(const std::filesystem::path& directory) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    uintmax_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
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
    absl::StatusOr<contract::ShimConfig> config =
        json.ok() ? contract::DecodeShimConfig(*json, contract::UnknownSettings::kIgnore)
                  : absl::StatusOr<contract::ShimConfig>(json.status());
    if (!config.ok() && LockDeadShim(directory).valid()) {
      // The agent, or the machine, died before the directory was complete.
      std::filesystem::remove_all(directory, error);
      continue;
    }
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

void ShimSet::Spawn(const SpawnShim& command, std::optional<StandbySet::Taken> standby) {
  Key key = {command.generation, command.rank};
  absl::StatusOr<std::string> name = ShimDirectoryName(command.generation, command.rank);
  if (!name.ok()) {
    if (standby.has_value()) Discard(*standby);
    return FailStart(key, "", name.status());
  }
  std::string directory = absl::StrCat(options_.shims, "/", *name);
  Shim& shim = shims_[key];
  shim.directory = directory;
  absl::Status status = CheckPaths(command);
  if (status.ok()) status = standby.has_value() ? HandOver(command, *standby, shim) : Launch(command, shim);
  if (status.ok()) {
    if (standby.has_value()) sink_(ShimConnected{key.first, key.second});
    return;
  }
  if (standby.has_value()) Discard(*standby);
  FailStart(key, directory, status);
}

absl::Status ShimSet::CheckPaths(const SpawnShim& command) const {
  for (const std::string& path : command.start.paths) LLM_RETURN_IF_ERROR(options_.roots.Check(path));
  return absl::OkStatus();
}

absl::Status ShimSet::Launch(const SpawnShim& command, Shim& shim) const {
  LLM_RETURN_IF_ERROR(MakeDirectories(shim.directory));
  LLM_RETURN_IF_ERROR(Prepare(command, shim.directory, shim.directory));
  LLM_ASSIGN_OR_RETURN(StartingShim starting, LaunchShim(options_.shim_program, shim.directory));
  shim.starter = starting.pid;
  shim.process = std::move(starting.process);
  return absl::OkStatus();
}

absl::Status ShimSet::HandOver(const SpawnShim& command, StandbySet::Taken& standby, Shim& shim) const {
  // Complete before it has the rank's name: whoever finds it there finds all that the shim needs.
  LLM_RETURN_IF_ERROR(Prepare(command, standby.directory, shim.directory));
  if (::rename(standby.directory.c_str(), shim.directory.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", standby.directory, " to ", shim.directory));
  }
  shim.link = std::move(standby.link);
  (void)shim.link->Send(contract::Take{});  // a broken link shows when it is read
  return absl::OkStatus();
}

absl::Status ShimSet::Prepare(const SpawnShim& command, const std::string& directory,
                              const std::string& final_directory) const {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : options_.environment) {
    std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    environment.insert(parts);
  }
  for (const auto& [name, value] : command.start.env) environment[name] = value;
  contract::ShimConfig config = {
      .assignment = command.assignment,
      .argv = {options_.trainer_program, "train",
               absl::StrCat("--config=", final_directory, "/", contract::kTrainerConfigFile)},
      .orphan_timeout_seconds = absl::ToDoubleSeconds(command.start.orphan_timeout),
      .log_bytes_max = options_.log_bytes_max};
  for (const auto& [name, value] : environment) config.environment.push_back(absl::StrCat(name, "=", value));
  // Not forced to the disk: after a loss of power there is no process that they would be of.
  LLM_RETURN_IF_ERROR(ReplaceFile(absl::StrCat(directory, "/", contract::kTrainerConfigFile),
                                  command.start.trainer_config));
  return ReplaceFile(absl::StrCat(directory, "/", contract::kShimConfigFile), contract::EncodeShimConfig(config));
}

void ShimSet::EndStart(const Key& key, Shim& shim, absl::Duration now) {
  absl::Status started = EndLaunch(shim.starter, shim.directory);
  shim.starter = 0;
  shim.process.Reset();
  if (started.ok()) return Reach(key, shim, now);
  FailStart(key, shim.directory, started);
}

void ShimSet::Reach(const Key& key, Shim& shim, absl::Duration now) {
  shim.retry_at.reset();
  if (shim.foreign) return WatchForeign(key, shim, now);
  shim.link.reset();
  absl::StatusOr<std::unique_ptr<contract::LineLink>> link = ConnectToShim(shim.directory);
  if (link.ok()) {
    shim.link = *std::move(link);
    // In case it is a standby whose agent ended before it could say so.
    (void)shim.link->Send(contract::Take{});
    return sink_(ShimConnected{key.first, key.second});
  }
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

void ShimSet::Send(const SendToShim& command) {
  auto it = shims_.find({command.generation, command.rank});
  if (it == shims_.end()) return;
  const auto* kill = std::get_if<contract::Kill>(&command.message);
  if (it->second.foreign && kill != nullptr) KillForeignShim(it->second.directory, kill->grace_seconds);
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
  shim.process = KillAbandonedTrainer(shim.directory);
  // Otherwise Handle() goes on when it has ended.
  if (!shim.process.valid()) FinishBurial(key, shim);
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
  std::sort(ended.rbegin(), ended.rend());
  int64_t bytes = 0;
  for (size_t i = 0; i < ended.size(); ++i) {
    bytes += BytesIn(ended[i].second);
    bool kept = i < options_.ended_max && (i == 0 || bytes <= options_.ended_bytes_max);
    if (!kept) std::filesystem::remove_all(ended[i].second, error);
  }
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

std::vector<ShimSet::LiveRank> ShimSet::Live() const {
  std::vector<LiveRank> live;
  for (const auto& [key, shim] : shims_) {
    if (!shim.exited) live.push_back({key.first, key.second, shim.directory});
  }
  return live;
}

std::vector<int> ShimSet::RanksOf(const GenerationId& generation) const {
  std::vector<int> ranks;
  for (const auto& [key, shim] : shims_) {
    if (key.first == generation) ranks.push_back(key.second);
  }
  return ranks;
}

bool ShimSet::IsLive(const GenerationId& generation, int rank) const {
  auto it = shims_.find({generation, rank});
  return it != shims_.end() && !it->second.exited;
}

}  // namespace llmctl::agent
