#include "worker/contract/line_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::contract {
namespace {

constexpr size_t kUnknownTypesMax = 32;

}  // namespace

LineLink::LineLink(UniqueFd socket) : socket_(std::move(socket)) {
  int flags = ::fcntl(socket_.get(), F_GETFL);
  CHECK(flags >= 0 && ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) == 0) << "not an open descriptor";
}

absl::Status LineLink::Receive(std::vector<Message>& out) {
  char buffer[64 * 1024];
  ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, 0);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return absl::OkStatus();
    return ErrnoStatus(errno, "receive");
  }
  if (n == 0) return absl::UnavailableError("the peer closed the link");
  lines_.Append(absl::string_view(buffer, n));
  while (std::optional<std::string> line = lines_.Next()) {
    absl::StatusOr<Envelope> envelope = DecodeLine(*line);
    if (envelope.ok()) {
      out.push_back(std::move(envelope->message));
    } else if (!absl::IsUnimplemented(envelope.status())) {
      return envelope.status();
    } else {
      std::string text(envelope.status().message());
      // A peer does not choose how much we remember.
      if (unknown_.size() < kUnknownTypesMax && unknown_.insert(text).second) passed_over_.push_back(std::move(text));
    }
  }
  if (lines_.overflowed()) {
    return absl::InvalidArgumentError(absl::StrCat("a line is longer than ", kLineBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status LineLink::Send(const Message& message) {
  LLM_ASSIGN_OR_RETURN(std::string line, EncodeLine({.seq = next_seq_, .message = message}));
  ++next_seq_;
  queued_ += line;
  queued_ += '\n';
  return Flush();
}

absl::Status LineLink::Flush() {
  size_t sent = 0;
  absl::Status status;
  while (sent < queued_.size()) {
    ssize_t n = ::send(socket_.get(), queued_.data() + sent, queued_.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += n;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      status = absl::UnavailableError(ErrnoStatus(errno, "send").message());
      break;
    }
  }
  queued_.erase(0, sent);
  return status;
}

}  // namespace llmctl::contract
