#include "worker/agent/host/standby_set.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/base/check.h"
#include "common/base/file.h"

namespace llmctl::agent {
namespace {

// As long as the directory of a rank: the command lines of shim and trainer name it, and there must be room for the
// rank's when that takes its place.
constexpr absl::string_view kPrefix = "waiting-for-a-job-";

std::optional<int64_t> NumberOf(const std::string& name) {
  absl::string_view digits = name;
  int64_t number = 0;
  if (!absl::ConsumePrefix(&digits, kPrefix) || !absl::SimpleAtoi(digits, &number)) return std::nullopt;
  return number;
}

// What a process holds for itself; pages of files are everybody's and can be read again.
int64_t OwnMemory(int64_t pid) {
  const std::string status = ReadFile(absl::StrCat("/proc/", pid, "/status")).value_or("");
  const std::string field = "RssAnon:";
  size_t at = status.find(field);
  if (at == std::string::npos) return 0;
  absl::string_view text = absl::string_view(status).substr(at + field.size());
  int64_t kilobytes = 0;
  if (!absl::SimpleAtoi(text.substr(0, text.find("kB")), &kilobytes)) return 0;
  return kilobytes << 10;
}

void RemoveDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
}

}  // namespace

StandbySet::StandbySet(Options options, const TrainerProgram& trainer, std::function<void(Event)> sink)
    : options_(std::move(options)), trainer_(trainer), sink_(std::move(sink)) {}

std::string StandbySet::DirectoryOf(int64_t number) const {
  return absl::StrFormat("%s/%s%08d", options_.standbys, kPrefix, number);
}

contract::StandbyConfig StandbySet::Config(const std::string& directory) const {
  return {.argv = {trainer_.path(), "standby",
                   absl::StrCat("--config=", directory, "/", contract::kTrainerConfigFile)},
          .environment = options_.environment,
          .trainer_digest = trainer_.digest(),
          .orphan_timeout_seconds = options_.orphan_timeout_seconds,
          .log_bytes_max = options_.log_bytes_max};
}

int64_t StandbySet::FindAll() {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.standbys, error)) {
    if (auto number = NumberOf(entry.path().filename().string())) found.emplace_back(*number, entry.path().string());
  }
  std::sort(found.begin(), found.end());
  for (const auto& [number, directory] : found) Adopt(number, directory);
  return found.empty() ? 1 : found.back().first + 1;
}

void StandbySet::Adopt(int64_t number, const std::string& directory) {
  absl::StatusOr<std::unique_ptr<contract::LineLink>> link = ConnectToShim(directory);
  if (!link.ok()) {
    // One that lives all the same has no agent, and ends soon.
    UniqueFd lock = LockDeadShim(directory);
    if (!lock.valid()) return;
    KillAbandonedTrainer(directory);
    RemoveDirectory(directory);
    return;
  }
  Standby& standby = standbys_[number];
  standby.directory = directory;
  standby.link = *std::move(link);
  absl::StatusOr<std::string> json = ReadFile(absl::StrCat(directory, "/", contract::kStandbyConfigFile));
  absl::StatusOr<contract::StandbyConfig> config =
      json.ok() ? contract::DecodeStandbyConfig(*json) : absl::StatusOr<contract::StandbyConfig>(json.status());
  if (config.ok() && *config == Config(directory)) return sink_(StandbyConnected{number});
  standby.wanted = false;
  (void)standby.link->Send(contract::Kill{});
}

void StandbySet::Start(int64_t number) {
  CHECK(!standbys_.contains(number)) << "standby " << number << " is not gone yet";
  std::string directory = DirectoryOf(number);
  RemoveDirectory(directory);
  absl::Status status = MakeDirectories(directory);
  if (status.ok()) {
    status = ReplaceFile(absl::StrCat(directory, "/", contract::kStandbyConfigFile),
                         contract::EncodeStandbyConfig(Config(directory)));
  }
  Standby& standby = standbys_[number];
  standby.directory = directory;
  if (status.ok()) {
    absl::StatusOr<StartingShim> starting = LaunchShim(options_.shim_program, directory);
    status = starting.status();
    if (starting.ok()) standby.starting = *std::move(starting);
  }
  if (!status.ok()) Forget(number, std::string(status.message()));
}

void StandbySet::End(int64_t number) {
  auto it = standbys_.find(number);
  if (it == standbys_.end()) return;
  it->second.wanted = false;
  if (it->second.link != nullptr) (void)it->second.link->Send(contract::Kill{});
}

void StandbySet::EndAll() {
  for (const auto& [number, standby] : standbys_) End(number);
}

absl::StatusOr<StandbySet::Taken> StandbySet::Take(int64_t number) {
  auto it = standbys_.find(number);
  if (it == standbys_.end() || it->second.link == nullptr || !it->second.wanted) {
    return absl::UnavailableError(absl::StrCat("standby ", number, " has just ended"));
  }
  Taken taken = {.directory = it->second.directory, .link = std::move(it->second.link)};
  standbys_.erase(it);
  return taken;
}

void StandbySet::EndStart(int64_t number, Standby& standby) {
  absl::Status started = EndLaunch(standby.starting.pid, standby.directory);
  standby.starting = {};
  if (!started.ok()) return Forget(number, std::string(started.message()));
  absl::StatusOr<std::unique_ptr<contract::LineLink>> link = ConnectToShim(standby.directory);
  if (!link.ok()) return Forget(number, std::string(link.status().message()));
  standby.link = *std::move(link);
  if (!standby.wanted) {
    (void)standby.link->Send(contract::Kill{});
    return;
  }
  sink_(StandbyConnected{number});
}

void StandbySet::ReadLink(int64_t number, Standby& standby) {
  std::vector<contract::Message> messages;
  absl::Status status = standby.link->Receive(messages);
  for (const contract::Message& message : messages) {
    if (const auto* hello = std::get_if<contract::Hello>(&message)) {
      // Without us it ends.
      absl::Status spoken = contract::CheckVersion(*hello);
      if (!spoken.ok()) return Forget(number, std::string(spoken.message()));
    }
    if (const auto* started = std::get_if<contract::Started>(&message)) standby.pid = started->pid;
    if (std::holds_alternative<contract::Waiting>(message) && standby.wanted) {
      sink_(StandbyReady{.number = number, .memory_bytes = OwnMemory(standby.pid)});
    }
    if (const auto* exited = std::get_if<contract::Exited>(&message)) {
      std::string how = exited->start_failed   ? exited->error
                        : exited->signal != 0 ? absl::StrCat("signal ", exited->signal)
                                               : absl::StrCat("exit code ", exited->exit_code);
      return Forget(number, how);
    }
  }
  if (!status.ok()) Forget(number, "its shim has ended");
}

void StandbySet::Forget(int64_t number, const std::string& why) {
  auto it = standbys_.find(number);
  // Without us its shim ends, and what it still writes it writes into a directory without a name.
  RemoveDirectory(it->second.directory);
  standbys_.erase(it);
  sink_(StandbyEnded{.number = number, .why = why});
}

std::vector<pollfd> StandbySet::Descriptors() const {
  std::vector<pollfd> out;
  for (const auto& [number, standby] : standbys_) {
    if (standby.starting.process.valid()) out.push_back({standby.starting.process.get(), POLLIN, 0});
    if (standby.link == nullptr) continue;
    short events = standby.link->WantsWrite() ? POLLIN | POLLOUT : POLLIN;
    out.push_back({standby.link->fd(), events, 0});
  }
  return out;
}

void StandbySet::Handle(const pollfd& ready) {
  for (auto& [number, standby] : standbys_) {
    if (standby.starting.process.valid() && standby.starting.process.get() == ready.fd) {
      // The number may have been another descriptor's when it was polled.
      if (HasEnded(standby.starting.process)) EndStart(number, standby);
      return;
    }
    if (standby.link == nullptr || standby.link->fd() != ready.fd) continue;
    if (ready.revents & POLLOUT) (void)standby.link->Flush();
    if (ready.revents & ~POLLOUT) ReadLink(number, standby);
    return;
  }
}

}  // namespace llmctl::agent
