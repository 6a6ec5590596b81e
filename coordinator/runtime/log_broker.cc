#include "coordinator/runtime/log_broker.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "coordinator/runtime/waiting.h"

namespace llmctl::runtime {

void LogBroker::Ask(const NodeId& node, LogQuery query, Instant now, Answer answer) {
  std::shared_ptr<HostLink> link = links_.Find(node);
  if (!link) {
    return answer(absl::UnavailableError(
        absl::StrCat("host ", node.value(),
                     ", which keeps this log, is not connected: try again when `llmctl nodes` shows it ready")));
  }
  absl::Status closed;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    query.request_id = next_++;
    if (closed.ok()) pending_[query.request_id] = {node, now.monotonic + patience_, std::move(answer)};
  }
  if (!closed.ok()) return answer(std::move(closed));
  link->ReadLog(query);
}

bool LogBroker::Deliver(const NodeId& node, int64_t request_id, absl::StatusOr<LogPiece> piece) {
  Answer answer;
  {
    MutexLock lock(mutex_);
    auto it = pending_.find(request_id);
    if (it == pending_.end() || it->second.node != node) return false;
    answer = std::move(it->second.answer);
    pending_.erase(it);
  }
  answer(std::move(piece));
  return true;
}

void LogBroker::Extend(absl::Duration stall) {
  MutexLock lock(mutex_);
  ExtendDeadlines(pending_, stall);
}

void LogBroker::Expire(Instant now) {
  std::vector<Pending> late;
  {
    MutexLock lock(mutex_);
    late = TakeLate(pending_, now);
  }
  for (Pending& pending : late) {
    pending.answer(absl::DeadlineExceededError(absl::StrCat(
        "host ", pending.node.value(), " did not send the log within ", absl::FormatDuration(patience_))));
  }
}

void LogBroker::Close(const absl::Status& status) {
  std::map<int64_t, Pending> unanswered;
  {
    MutexLock lock(mutex_);
    closed_ = status;
    unanswered.swap(pending_);
  }
  for (auto& [request, pending] : unanswered) pending.answer(status);
}

}  // namespace llmctl::runtime
