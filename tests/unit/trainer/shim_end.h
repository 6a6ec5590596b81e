// The shim's end of a link, driven by a test: what the trainer sent, line by line, and what it is to hear.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "worker/contract/line_splitter.h"
#include "worker/contract/messages.h"

namespace llmctl::trainer {

class ShimEnd {
 public:
  ShimEnd() {
    std::array<int, 2> pair = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    fd_ = pair[0];
    trainer_fd_ = pair[1];
  }
  ~ShimEnd() { Close(); }

  // To be taken over by a ShimLink, or handed to a process.
  int trainer_fd() const { return trainer_fd_; }

  // In the process that keeps only this end.
  void CloseTrainerEnd() { close(std::exchange(trainer_fd_, -1)); }

  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

  // The trainer may be gone by now: then nobody hears.
  void SayRaw(const std::string& bytes) { (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void Say(contract::Message message) {
    auto line = contract::EncodeLine({.seq = ++seq_, .message = std::move(message)});
    ASSERT_TRUE(line.ok()) << line.status();
    SayRaw(*line + "\n");
  }
  void SayHello() { Say(contract::Hello{.role = "shim", .generation = {JobId("j-1"), 1, 1}}); }

  // Waits for the next line; nothing at the end of the link.
  std::optional<contract::Envelope> Hear() {
    while (true) {
      if (std::optional<std::string> line = lines_.Next()) {
        auto envelope = contract::DecodeLine(*line);
        EXPECT_TRUE(envelope.ok()) << envelope.status();
        if (!envelope.ok()) return std::nullopt;
        return *envelope;
      }
      char bytes[4096];
      ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
      if (got <= 0) return std::nullopt;
      lines_.Append({bytes, static_cast<size_t>(got)});
    }
  }
  // The next message of one type; others are passed over.
  template <typename T>
  std::optional<T> HearA() {
    while (std::optional<contract::Envelope> envelope = Hear()) {
      if (auto* message = std::get_if<T>(&envelope->message)) return *message;
    }
    return std::nullopt;
  }

 private:
  int fd_ = -1;
  int trainer_fd_ = -1;
  int64_t seq_ = 0;
  contract::LineSplitter lines_{contract::kLineBytesMax};
};

}  // namespace llmctl::trainer
