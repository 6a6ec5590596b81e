// One end of a stream socket that speaks contract lines, without ever blocking.
//
// Receive() gives the messages that have arrived, Send() queues and writes what the socket takes at once; the
// owner's poll loop calls Flush() when WantsWrite(). A peer that does not read makes queued_bytes() grow: what
// to do about it is the owner's choice. Not thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "common/base/unique_fd.h"
#include "worker/contract/line_splitter.h"
#include "worker/contract/messages.h"

namespace llmctl::contract {

class LineLink {
 public:
  // Takes a connected stream socket and makes it non-blocking.
  explicit LineLink(UniqueFd socket);

  // Appends what has arrived. Unavailable: the peer closed; InvalidArgument: the peer sent nonsense. Either way
  // messages before that are in `out` and the link is of no more use.
  absl::Status Receive(std::vector<Message>& out);
  // InvalidArgument: the message does not fit in a line, and was not queued. Unavailable: the peer is gone.
  absl::Status Send(const Message& message);
  absl::Status Flush();

  // What Receive() has passed over because its type is not known here (a newer peer may say more than we know), in
  // words, each type once.
  std::vector<std::string> TakePassedOver() { return std::exchange(passed_over_, {}); }

  bool WantsWrite() const { return !queued_.empty(); }
  size_t queued_bytes() const { return queued_.size(); }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  LineSplitter lines_{kLineBytesMax};
  std::string queued_;
  int64_t next_seq_ = 1;
  std::set<std::string> unknown_;
  std::vector<std::string> passed_over_;
};

}  // namespace llmctl::contract
