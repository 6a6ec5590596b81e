#include "worker/trainer/shim_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "worker/contract/line_splitter.h"

namespace llmctl::trainer {
namespace {

using std::chrono::steady_clock;

// A year stands for "for ever": an infinite duration would overflow the clock.
steady_clock::time_point DeadlineAfter(absl::Duration timeout) {
  return steady_clock::now() + absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), absl::Hours(8760)));
}

// The base64 of a value and its key must fit a line.
constexpr size_t kStoreBytesMax = 40 * 1024;

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

ShimLink::ShimLink(int fd) : fd_(fd) {
  Send(contract::Hello{.role = "trainer"});
  reader_ = std::thread([this] { ReadLines(); });
  writer_ = std::thread([this] { WriteLines(); });
}

ShimLink::~ShimLink() {
  Flush(absl::Seconds(1));
  OnUrgent(nullptr);
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }
  shutdown(fd_, SHUT_RDWR);  // frees both threads from their system calls
  reader_.join();
  writer_.join();
  close(fd_);
}

void ShimLink::Send(contract::Message message) {
  MutexLock lock(mutex_);
  if (ended_ || closing_) return;
  if (std::holds_alternative<contract::Progress>(message)) {
    ++progress_queued_;
    DropOldProgress();
  }
  outbox_.push_back(std::move(message));
  changed_.NotifyAll();
}

void ShimLink::DropOldProgress() {
  if (progress_queued_ <= kProgressQueued) return;
  auto oldest = std::find_if(outbox_.begin(), outbox_.end(), [](const contract::Message& queued) {
    return std::holds_alternative<contract::Progress>(queued);
  });
  outbox_.erase(oldest);
  --progress_queued_;
}

bool ShimLink::Flush(absl::Duration timeout) {
  auto deadline = DeadlineAfter(timeout);
  MutexLock lock(mutex_);
  while (!ended_ && (!outbox_.empty() || writing_)) {
    if (steady_clock::now() >= deadline) return false;
    changed_.WaitUntil(mutex_, deadline);
  }
  return !ended_;
}

absl::StatusOr<contract::StoreReply> ShimLink::Call(contract::StoreRequest request, absl::Duration timeout) {
  if (request.key.size() + request.value.size() + request.expected.size() > kStoreBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous key ", request.key, ": value of ",
                                                   request.value.size(), " bytes does not fit a line"));
  }
  auto deadline = DeadlineAfter(timeout);
  int64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = ++last_request_;
    waiting_[id] = true;
  }
  request.request_id = id;
  std::string key = request.key;
  Send(std::move(request));

  MutexLock lock(mutex_);
  absl::Status status;
  while (replies_.count(id) == 0 && status.ok()) {
    if (!cancelled_.empty()) {
      status = absl::UnavailableError(absl::StrCat("rendezvous cancelled: ", cancelled_));
    } else if (ended_) {
      status = absl::UnavailableError(absl::StrCat("rendezvous: the link to the shim ended: ", end_reason_));
    } else if (urgent_) {
      status = absl::UnavailableError("rendezvous: this generation is being stopped");
    } else if (steady_clock::now() >= deadline) {
      status = absl::DeadlineExceededError(
          absl::StrCat("rendezvous key ", key, ": no answer within ", absl::FormatDuration(timeout)));
    } else {
      changed_.WaitUntil(mutex_, deadline);
    }
  }
  waiting_.erase(id);
  if (!status.ok()) return status;
  contract::StoreReply reply = std::move(replies_.extract(id).mapped());
  if (!reply.error.empty()) return absl::UnavailableError(absl::StrCat("rendezvous key ", key, ": ", reply.error));
  return reply;
}

void ShimLink::CancelCalls(absl::string_view reason) {
  MutexLock lock(mutex_);
  cancelled_ = reason.empty() ? "no reason given" : std::string(reason);
  changed_.NotifyAll();
}

std::vector<contract::Message> ShimLink::Take() {
  MutexLock lock(mutex_);
  return std::exchange(inbox_, {});
}

bool ShimLink::Wait(absl::Duration timeout) {
  auto deadline = DeadlineAfter(timeout);
  MutexLock lock(mutex_);
  while (inbox_.empty() && !ended_) {
    if (steady_clock::now() >= deadline) return false;
    changed_.WaitUntil(mutex_, deadline);
  }
  return true;
}

bool ShimLink::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

std::string ShimLink::end_reason() const {
  MutexLock lock(mutex_);
  return end_reason_;
}

void ShimLink::OnUrgent(std::function<void()> handler) {
  // Under the lock also while it runs: after OnUrgent(nullptr) no call is in progress. Handlers do not call back.
  MutexLock lock(mutex_);
  urgent_handler_ = std::move(handler);
  if (urgent_ && urgent_handler_) urgent_handler_();
}

void ShimLink::RaiseUrgent() {
  MutexLock lock(mutex_);
  urgent_ = true;
  changed_.NotifyAll();
  if (urgent_handler_) urgent_handler_();
}

void ShimLink::ReadLines() {
  contract::LineSplitter lines(contract::kLineBytesMax);
  std::vector<char> bytes(contract::kLineBytesMax);
  bool first = true;
  while (true) {
    ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    // A reset is an end with lines of ours unread.
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return End("the shim closed it");
    if (got < 0) return End(absl::StrCat("read: ", std::strerror(errno)));
    lines.Append(absl::string_view(bytes.data(), static_cast<size_t>(got)));
    while (std::optional<std::string> line = lines.Next()) {
      if (!HandleLine(*line, first)) return;
      first = false;
    }
    if (lines.overflowed()) return End(absl::StrCat("a line is longer than ", contract::kLineBytesMax, " bytes"));
  }
}

bool ShimLink::HandleLine(absl::string_view line, bool first) {
  absl::StatusOr<contract::Envelope> envelope = contract::DecodeLine(line);
  if (envelope.status().code() == absl::StatusCode::kUnimplemented) return true;
  if (!envelope.ok()) {
    End(envelope.status().message());
    return false;
  }
  const auto* hello = std::get_if<contract::Hello>(&envelope->message);
  if (first && (hello == nullptr || hello->version != contract::kVersion)) {
    End(absl::StrCat("expected a hello of version ", contract::kVersion, ", found ", line.substr(0, 200)));
    return false;
  }
  if (hello == nullptr) Deliver(std::move(envelope->message));
  return true;
}

void ShimLink::Deliver(contract::Message message) {
  bool urgent = std::holds_alternative<contract::Stop>(message);
  {
    MutexLock lock(mutex_);
    if (auto* reply = std::get_if<contract::StoreReply>(&message)) {
      if (waiting_.count(reply->request_id) > 0) replies_[reply->request_id] = std::move(*reply);
      changed_.NotifyAll();
      return;
    }
    if (const auto* assignment = std::get_if<contract::Assignment>(&message)) {
      // An agent that comes back may repeat what it said.
      if (assignment->generation == assigned_) return;
      urgent = assigned_.generation > 0;
      assigned_ = assignment->generation;
    }
    inbox_.push_back(std::move(message));
    changed_.NotifyAll();
  }
  if (urgent) RaiseUrgent();
}

void ShimLink::End(absl::string_view reason) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    end_reason_ = std::string(reason);
    changed_.NotifyAll();
  }
  RaiseUrgent();
}

void ShimLink::WriteLines() {
  int64_t seq = 0;
  while (true) {
    contract::Envelope envelope;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      changed_.NotifyAll();
      while (outbox_.empty() && !closing_ && !ended_) changed_.Wait(mutex_);
      if (closing_ || ended_) return;
      envelope = {.seq = ++seq, .message = std::move(outbox_.front())};
      outbox_.pop_front();
      if (std::holds_alternative<contract::Progress>(envelope.message)) --progress_queued_;
      writing_ = true;
    }
    absl::StatusOr<std::string> line = contract::EncodeLine(envelope);
    if (!line.ok()) {
      std::fprintf(stderr, "link to the shim: message not sent: %s\n", line.status().ToString().c_str());
      continue;
    }
    if (!WriteAll(fd_, absl::StrCat(*line, "\n"))) {
      // The reader sees the same end and tells everybody.
      shutdown(fd_, SHUT_RDWR);
      MutexLock lock(mutex_);
      writing_ = false;
      changed_.NotifyAll();
      return;
    }
  }
}

}  // namespace llmctl::trainer
