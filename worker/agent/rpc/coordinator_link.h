// One dialled connection to the coordinator: a channel, the control stream on it, and log pushes beside it.
//
// Created by the main loop for each attempt to connect and thrown away with it; what arrives is handed to the
// sink on a gRPC thread. Send() queues; progress is dropped when the queue is long, nothing else ever is.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace llmctl::v1 {
class AgentMessage;
class CoordinatorMessage;
class PushLogRequest;
}  // namespace llmctl::v1

namespace llmctl::agent {

class CoordinatorLink {
 public:
  struct Sink {
    std::function<void(v1::CoordinatorMessage)> message;
    // Last call; the reason in words.
    std::function<void(std::string)> closed;
  };
  // Dials `address` ("host:port") without waiting.
  static std::unique_ptr<CoordinatorLink> Dial(const std::string& address, Sink sink);

  virtual ~CoordinatorLink() = default;

  virtual void Send(v1::AgentMessage message) = 0;
  // Blocks for up to 10 s.
  virtual absl::Status PushLog(const v1::PushLogRequest& request) = 0;
  // Sink::closed follows, unless it has come already.
  virtual void Cancel() = 0;
};

}  // namespace llmctl::agent
