#include "worker/shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/overloaded.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/picture.h"

namespace llmctl::shim {
namespace {

// SIGTERM to SIGKILL where nobody said how long.
constexpr double kDefaultGraceSeconds = 10;
constexpr int64_t kPersistRetryMs = 1000;
constexpr int64_t kOnePictureMs = 2000;
// An agent this far behind gets no more progress, which it does not miss...
constexpr size_t kProgressQueueBytesMax = 256 << 10;
// ...and one this far behind must connect again, which repeats what matters.
constexpr size_t kAgentQueueBytesMax = 8 << 20;
constexpr size_t kTrainerQueueBytesMax = 8 << 20;

int64_t NowMs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t ToMs(double seconds) { return static_cast<int64_t>(std::clamp(seconds, 0.0, 1e12) * 1000); }

bool IsReadable(int fd) {
  pollfd one = {fd, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// To shim.log, which is our standard error.
void Complain(absl::string_view text) {
  std::string line = absl::StrCat(text, "\n");
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

absl::Status PersistMessage(const char* path, const contract::Message& message) {
  absl::StatusOr<std::string> line = contract::EncodeLine({.message = message});
  return line.ok() ? WriteFileAtomically(path, absl::StrCat(*line, "\n")) : line.status();
}

// Last words are the trainer's: they must not make the record too long for a line, even where JSON takes six bytes
// for one, or there would never be a record. Half is for its message, half for our own.
constexpr size_t kRecordTextBytesMax = 10 << 10;
constexpr size_t kFatalClassBytesMax = 64;
static_assert(6 * (kRecordTextBytesMax + kFatalClassBytesMax) + 1024 < contract::kLineBytesMax);

}  // namespace

Shim::Shim(contract::ShimConfig config, Doors doors)
    : config_(std::move(config)),
      listener_(std::move(doors.listener)),
      signals_(std::move(doors.signals)),
      output_log_("stdout", config_.log_bytes_max),
      error_log_("stderr", config_.log_bytes_max),
      agent_absent_since_(NowMs()) {}

Shim::Shim(const contract::StandbyConfig& standby, Doors doors, std::function<void()> on_taken)
    : Shim({.assignment = {},
            .argv = standby.argv,
            .environment = standby.environment,
            .orphan_timeout_seconds = standby.orphan_timeout_seconds,
            .log_bytes_max = standby.log_bytes_max},
           std::move(doors)) {
  standby_ = true;
  on_taken_ = std::move(on_taken);
}

void Shim::Run() {
  Start();
  while (!released_) {
    PollOnce();
    ActOnDeadlines(NowMs());
  }
  ::unlink(contract::kShimSocketFile);
}

void Shim::Start() {
  absl::StatusOr<TrainerProcess> trainer =
      StartTrainer({.argv = config_.argv, .environment = config_.environment, .in_background = standby_});
  if (!trainer.ok()) {
    RecordExit({.start_failed = true, .error = std::string(trainer.status().message())});
    return;
  }
  trainer_ = *std::move(trainer);
  trainer_link_ = std::make_unique<contract::LineLink>(std::move(trainer_->link));
  contract::Started started = {.pid = trainer_->pid, .start_ticks = trainer_->start_ticks};
  kept_.Keep(started);
  // Only for whoever cleans up after a shim that was killed; not worth a trainer if the disk is full.
  absl::Status persisted = PersistMessage(contract::kStartedFile, started);
  if (!persisted.ok()) Complain(persisted.message());
  if (!standby_) AssignTrainer();
}

void Shim::AssignTrainer() {
  const contract::Assignment& assignment = config_.assignment;
  SendToTrainer(contract::Hello{.role = "shim",
                                .generation = assignment.generation,
                                .rank = assignment.rank,
                                .oldest_version = contract::kOldestVersion});
  SendToTrainer(assignment);
}

void Shim::Take() {
  if (!standby_) return;
  standby_ = false;
  memory_kills_.Begin();
  absl::StatusOr<std::string> json = ReadFile(contract::kShimConfigFile);
  absl::StatusOr<contract::ShimConfig> config =
      json.ok() ? contract::DecodeShimConfig(*json) : absl::StatusOr<contract::ShimConfig>(json.status());
  if (config.ok()) {
    config_ = *std::move(config);
  } else {
    take_error_ = absl::StrCat("the standby was given no rank that it can read: ", config.status().message());
    KillTrainer(0);
  }
  on_taken_();
  if (exited_.has_value()) {
    // It had ended just before: that is the rank's end now.
    RecordExit(*std::move(exited_));
    return;
  }
  for (const contract::Message& message : kept_.All()) SendToAgent(message);
  BringToForeground(trainer_->pid);
  if (config.ok()) AssignTrainer();
}

void Shim::PollOnce() {
  constexpr short kNone = 0;
  auto wanted = [](const std::unique_ptr<contract::LineLink>& link) -> pollfd {
    if (link == nullptr) return {-1, kNone, kNone};
    return {link->fd(), static_cast<short>(link->WantsWrite() ? POLLIN | POLLOUT : POLLIN), kNone};
  };
  enum { kSignals, kListener, kAgent, kTrainer, kOutput, kErrors, kCount };
  pollfd fds[kCount] = {{signals_.get(), POLLIN, kNone},
                        {listener_.get(), POLLIN, kNone},
                        wanted(agent_),
                        wanted(trainer_link_),
                        {trainer_.has_value() ? trainer_->output.get() : -1, POLLIN, kNone},
                        {trainer_.has_value() ? trainer_->errors.get() : -1, POLLIN, kNone}};
  if (::poll(fds, kCount, PollTimeout(NowMs())) <= 0) return;

  if (fds[kOutput].revents != 0) CopyOutput(trainer_->output, output_log_);
  if (fds[kErrors].revents != 0) CopyOutput(trainer_->errors, error_log_);
  if (fds[kTrainer].revents & POLLOUT) (void)trainer_link_->Flush();  // an error shows when reading
  if (fds[kTrainer].revents & ~POLLOUT) ReadTrainer();
  if (fds[kSignals].revents != 0) ReadSignals();
  if (agent_ != nullptr && (fds[kAgent].revents & POLLOUT) && !agent_->Flush().ok()) HearOutAgent();
  if (agent_ != nullptr && progress_skipped_ && !agent_->WantsWrite()) {
    progress_skipped_ = false;
    SendToAgent(*kept_.newest_progress());
  }
  if (agent_ != nullptr && (fds[kAgent].revents & ~POLLOUT)) ReadAgent();
  if (fds[kListener].revents != 0) AcceptAgent();
}

int Shim::PollTimeout(int64_t now) const {
  int64_t next = now + 3600 * 1000;
  if (sigkill_at_.has_value()) next = std::min(next, *sigkill_at_);
  bool absence_matters = exited_.has_value() ? exit_persisted_ : !orphaned_;
  if (agent_ == nullptr && absence_matters) {
    next = std::min(next, agent_absent_since_ + ToMs(config_.orphan_timeout_seconds));
  }
  if (exited_.has_value() && !exit_persisted_ && !standby_) next = std::min(next, persist_again_at_);
  return static_cast<int>(std::max<int64_t>(next - now, 0));
}

void Shim::ActOnDeadlines(int64_t now) {
  if (sigkill_at_.has_value() && now >= *sigkill_at_) {
    sigkill_at_.reset();
    if (trainer_.has_value()) ::kill(-trainer_->pid, SIGKILL);
  }
  bool absent_too_long =
      agent_ == nullptr && now - agent_absent_since_ >= ToMs(config_.orphan_timeout_seconds);
  if (trainer_.has_value() && absent_too_long && !orphaned_) {
    orphaned_ = true;
    agent_absent_since_ = now;  // what is left to do for an agent gets as long again
    KillTrainer(standby_ ? 0 : kDefaultGraceSeconds);
  }
  if (!exited_.has_value()) return;
  if (!exit_persisted_ && !standby_ && now >= persist_again_at_) PersistExit();
  bool nobody_misses_us = agent_ == nullptr && (!kept_.has_unanswered_commit() || absent_too_long);
  if ((exit_persisted_ || standby_) && nobody_misses_us) released_ = true;
}

void Shim::AcceptAgent() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return;
  // The newer connection wins: the older one's agent is gone, or is the same and has given up on it.
  HearOutAgent();
  agent_ = std::make_unique<contract::LineLink>(std::move(socket));
  progress_skipped_ = false;
  const contract::Assignment& assignment = config_.assignment;
  SendToAgent(contract::Hello{.role = "shim",
                              .generation = assignment.generation,
                              .rank = assignment.rank,
                              .oldest_version = contract::kOldestVersion});
  for (const contract::Message& message : kept_.All()) SendToAgent(message);
  if (standby_ && waiting_) SendToAgent(contract::Waiting{});
  if (exited_.has_value()) SendToAgent(*exited_);
  SendToAgent(contract::CaughtUp{});
}

void Shim::ReadAgent() {
  std::vector<contract::Message> messages;
  absl::Status status = agent_->Receive(messages);
  for (const std::string& what : agent_->TakePassedOver()) Complain(absl::StrCat("agent: unheard: ", what));
  for (const contract::Message& message : messages) HandleAgent(message);
  if (status.ok()) return;
  if (absl::IsInvalidArgument(status)) Complain(absl::StrCat("agent: ", status.message()));
  DropAgent();
}

void Shim::HandleAgent(const contract::Message& message) {
  if (const auto* kill = std::get_if<contract::Kill>(&message)) {
    KillTrainer(kill->grace_seconds);
  } else if (std::holds_alternative<contract::Take>(message)) {
    Take();
  } else if (const auto* picture = std::get_if<contract::TakePicture>(&message)) {
    TakePicture(picture->reason);
  } else if (std::holds_alternative<contract::Release>(message)) {
    released_ = exited_.has_value();
  } else if (!std::holds_alternative<contract::Hello>(message) && kept_.TakeReply(message)) {
    SendToTrainer(message);
  }
}

void Shim::SendToAgent(const contract::Message& message) {
  if (agent_ == nullptr) return;
  if (std::holds_alternative<contract::Progress>(message) && agent_->queued_bytes() > kProgressQueueBytesMax) {
    progress_skipped_ = true;
    return;
  }
  absl::Status sent = agent_->Send(message);
  if (absl::IsInvalidArgument(sent)) {
    // The next agent could not be sent it either: dropping this one would only begin a circle.
    Complain(absl::StrCat("to agent: ", sent.message()));
    return;
  }
  if (!sent.ok() || agent_->queued_bytes() > kAgentQueueBytesMax) HearOutAgent();
}

// It hears nothing more, but what it has said counts: its order to stop may be the last thing it did.
void Shim::HearOutAgent() {
  if (agent_ == nullptr) return;
  std::unique_ptr<contract::LineLink> gone = std::move(agent_);
  DropAgent();
  std::vector<contract::Message> messages;
  while (IsReadable(gone->fd()) && gone->Receive(messages).ok()) {
  }
  for (const contract::Message& message : messages) HandleAgent(message);
}

void Shim::DropAgent() {
  agent_.reset();
  agent_absent_since_ = NowMs();
}

void Shim::ReadTrainer() {
  std::vector<contract::Message> messages;
  absl::Status status = trainer_link_->Receive(messages);
  for (const std::string& what : trainer_link_->TakePassedOver()) Complain(absl::StrCat("trainer: unheard: ", what));
  for (const contract::Message& message : messages) HandleTrainer(message);
  if (status.ok() || trainer_link_ == nullptr) return;
  if (absl::IsInvalidArgument(status)) Complain(absl::StrCat("trainer: ", status.message()));
  trainer_link_.reset();
}

void Shim::HandleTrainer(const contract::Message& message) {
  memory_kills_.Heard(NowMs());
  if (std::holds_alternative<contract::Hello>(message)) return;
  if (std::holds_alternative<contract::Waiting>(message)) {
    waiting_ = true;
    if (standby_) SendToAgent(message);
    return;
  }
  if (kept_.Keep(message)) {
    SendToAgent(message);
    return;
  }
  const char* error = "too many requests without an answer";
  if (const auto* store = std::get_if<contract::StoreRequest>(&message)) {
    SendToTrainer(contract::StoreReply{.request_id = store->request_id, .error = error});
  } else if (const auto* commit = std::get_if<contract::CheckpointCommit>(&message)) {
    SendToTrainer(contract::CheckpointCommitReply{.request_id = commit->request_id, .error = error});
  }
}

void Shim::SendToTrainer(const contract::Message& message) {
  if (trainer_link_ == nullptr) return;
  absl::Status sent = trainer_link_->Send(message);
  if (!sent.ok() && !absl::IsInvalidArgument(sent)) return;  // closed: reading tells
  if (!sent.ok()) Complain(absl::StrCat("to trainer: ", sent.message()));
  if (trainer_link_->queued_bytes() > kTrainerQueueBytesMax) {
    Complain("the trainer does not read its messages: link closed");
    trainer_link_.reset();
  }
}

void Shim::ReadSignals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) KillTrainer(kDefaultGraceSeconds);
    if (info.ssi_signo == SIGUSR1) {
      TakePicture("the trainer asked for it");
      asked_for_picture_ = true;
    }
  }
  pictures_.Settle();
  if (!trainer_.has_value()) return;
  siginfo_t end = {};
  // Not reaped yet: as long as it is not, its number is no other process's.
  int waited = ::waitid(P_PID, trainer_->pid, &end, WEXITED | WNOHANG | WNOWAIT);
  CHECK(waited == 0) << "the trainer's end was taken by somebody else than EndTrainer(): " << std::strerror(errno);
  if (end.si_pid == trainer_->pid) EndTrainer();
}

size_t Shim::CopyOutput(UniqueFd& pipe, LogFile& log) {
  char buffer[64 * 1024];
  ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
  if (n > 0) {
    log.Append(absl::string_view(buffer, n));
    return n;
  }
  bool later = n < 0 && (errno == EINTR || errno == EAGAIN);
  if (!later) pipe.Reset();
  return 0;
}

// What is in the pipe now, and no more: a process that has left the group may print for ever.
void Shim::CopyRest(UniqueFd& pipe, LogFile& log) {
  int left = 0;
  if (!pipe.valid() || ::ioctl(pipe.get(), FIONREAD, &left) != 0) return;
  while (left > 0) {
    size_t copied = CopyOutput(pipe, log);
    if (copied == 0) return;
    left -= static_cast<int>(copied);
  }
}

bool Shim::HasPictureOfThisFailure() const {
  if (!pictured_at_.has_value()) return false;
  // A trainer that has asked is about to end, and may take long to: it writes its memory to disk, for example.
  if (asked_for_picture_) return true;
  return *pictured_at_ > stopped_at_.value_or(NowMs()) - kOnePictureMs;
}

// Of several requests for one failure the first counts: it is nearest to what happened.
void Shim::TakePicture(const std::string& reason) {
  if (!trainer_.has_value()) return;
  if (!HasPictureOfThisFailure()) {
    contract::Picture picture = pictures_.Take(trainer_->pid, reason);
    // No fsync: it tells of a lost process, not of a lost host, and nobody is to wait for the disk.
    std::string bytes = contract::EncodePicture(picture);
    std::string temporary = absl::StrCat(contract::kPictureFile, ".new");
    UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    bool written = ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (!written || ::rename(temporary.c_str(), contract::kPictureFile) != 0) {
      Complain(absl::StrCat("could not write ", contract::kPictureFile));
    }
    pictured_at_ = NowMs();
  }
  contract::CountPicture(contract::kPhaseFile);
}

void Shim::KillTrainer(double grace_seconds) {
  if (!trainer_.has_value()) return;
  bool first = !stopped_at_.has_value();
  if (first) stopped_at_ = NowMs();
  if (grace_seconds <= 0) {
    sigkill_at_.reset();
    ::kill(-trainer_->pid, SIGKILL);
    return;
  }
  if (first) ::kill(-trainer_->pid, SIGTERM);
  int64_t deadline = NowMs() + ToMs(grace_seconds);
  // A later order may shorten the grace, not prolong it.
  if (first || (sigkill_at_.has_value() && deadline < *sigkill_at_)) sigkill_at_ = deadline;
}

void Shim::EndTrainer() {
  // Children that it left behind: nobody else would end them, and they may hold its devices.
  ::kill(-trainer_->pid, SIGKILL);
  int wait_status = 0;
  pid_t reaped = ::waitpid(trainer_->pid, &wait_status, 0);
  CHECK_EQ(reaped, trainer_->pid) << "a trainer that has ended is there until it is waited for";
  bool memory_ran_out = memory_kills_.HasSeenKill();
  CopyRest(trainer_->output, output_log_);
  CopyRest(trainer_->errors, error_log_);
  // Its last words may still be in the socket; whoever else has the other end may add none.
  if (trainer_link_ != nullptr) ::shutdown(trainer_link_->fd(), SHUT_RD);
  while (trainer_link_ != nullptr && IsReadable(trainer_link_->fd())) ReadTrainer();
  trainer_link_.reset();
  trainer_.reset();
  sigkill_at_.reset();

  contract::Exited exited = {.stopped_by_agent = stopped_at_.has_value()};
  if (WIFSIGNALED(wait_status)) {
    exited.signal = WTERMSIG(wait_status);
  } else {
    exited.exit_code = WEXITSTATUS(wait_status);
  }
  if (!take_error_.empty()) exited = {.start_failed = true, .error = take_error_};
  exited.fatal_class = kept_.fatal().failure_class;
  exited.fatal_message = kept_.fatal().message;
  if (exited.signal == SIGKILL && !exited.stopped_by_agent && exited.fatal_class.empty() && memory_ran_out) {
    exited.fatal_class = "oom";
    exited.fatal_message = "the kernel killed it because this host, or the cgroup it runs in, had no memory left";
  }
  if (orphaned_ && exited.fatal_class.empty()) {
    exited.fatal_class = "orphaned";
    exited.fatal_message = absl::StrCat("no agent for ", config_.orphan_timeout_seconds, " s");
  }
  for (const LogFile* log : {&output_log_, &error_log_}) {
    if (log->lost_bytes() > 0) Complain(absl::StrCat("could not write ", log->lost_bytes(), " bytes of output"));
  }
  RecordExit(std::move(exited));
}

void Shim::RecordExit(contract::Exited exited) {
  auto clip = [](std::string& text, size_t bytes_max) { text.resize(std::min(text.size(), bytes_max)); };
  clip(exited.fatal_class, kFatalClassBytesMax);
  clip(exited.fatal_message, kRecordTextBytesMax / 2);
  clip(exited.error, kRecordTextBytesMax / 2);
  exited_ = std::move(exited);
  if (!standby_) PersistExit();
  // Even if the disk is full: an agent that does not know would wait for ever.
  SendToAgent(*exited_);
}

void Shim::PersistExit() {
  absl::Status persisted = PersistMessage(contract::kExitFile, *exited_);
  exit_persisted_ = persisted.ok();
  if (exit_persisted_) return;
  Complain(persisted.message());
  persist_again_at_ = NowMs() + kPersistRetryMs;
}

}  // namespace llmctl::shim
