// What an agent must hear even if it is away when the trainer says it.
//
// States (started, ready, the newest progress) are kept as they are now. Requests are kept until their reply has
// passed, so a request whose agent died before answering is asked again of the next, and a reply that comes
// twice reaches the trainer once. Bounded: a trainer with too much unanswered gets its requests refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "worker/contract/messages.h"

namespace llmctl::shim {

class KeptMessages {
 public:
  // Remembers a message of the trainer (or our own `started`), as far as its kind is kept. False: a request that
  // exceeds the bound, to be refused.
  bool Keep(const contract::Message& message);
  // Whether the trainer waits for this reply; it is then no longer kept. True for what is no reply.
  bool TakeReply(const contract::Message& message);

  // In the order a new agent hears it.
  std::vector<contract::Message> All() const;
  std::optional<contract::Progress> newest_progress() const;
  const contract::Fatal& fatal() const { return fatal_; }
  bool has_unanswered_commit() const { return !commits_.empty(); }

 private:
  std::optional<contract::Started> started_;
  std::optional<contract::Ready> ready_;
  std::deque<contract::Progress> progress_;
  std::map<int64_t, contract::StoreRequest> store_requests_;
  size_t store_bytes_ = 0;
  std::map<int64_t, contract::CheckpointCommit> commits_;
  std::optional<contract::UpdateResult> update_result_;
  contract::Fatal fatal_;
};

}  // namespace llmctl::shim
