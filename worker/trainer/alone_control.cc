#include "worker/trainer/alone_control.h"

#include <utility>

namespace llmctl::trainer {

void AloneControl::Commit(const contract::CheckpointCommit& commit) {
  contract::CheckpointCommitReply reply = {.request_id = commit.request_id, .committed = true};
  committed_.push_back(commit.path);
  while (committed_.size() > static_cast<size_t>(keep_last_)) {
    reply.removable_paths.push_back(committed_.front());
    committed_.pop_front();
  }
  replies_.push_back(std::move(reply));
}

Requests AloneControl::Take() {
  Requests requests;
  requests.commit_replies = std::exchange(replies_, {});
  if (terminated_) requests.yield = "SIGTERM";
  return requests;
}

}  // namespace llmctl::trainer
