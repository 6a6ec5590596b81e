#include "worker/shim/kept_messages.h"

#include <variant>

#include "common/base/overloaded.h"

namespace llmctl::shim {
namespace {

// Enough for a curve to have no visible gap after an agent's restart.
constexpr size_t kProgressKept = 64;
// A rendezvous needs a few keys per peer, of some hundred bytes each; checkpoints come minutes apart.
constexpr size_t kStoreBytesMax = 4 << 20;
constexpr size_t kCommitsMax = 1024;

size_t SizeOf(const contract::StoreRequest& request) {
  return sizeof request + request.key.size() + request.value.size() + request.expected.size();
}

}  // namespace

bool KeptMessages::Keep(const contract::Message& message) {
  bool kept = true;
  std::visit(Overloaded{
                 [&](const contract::Started& m) { started_ = m; },
                 [&](const contract::Ready& m) { ready_ = m; },
                 [&](const contract::Progress& m) {
                   if (progress_.size() == kProgressKept) progress_.pop_front();
                   progress_.push_back(m);
                 },
                 [&](const contract::StoreRequest& m) {
                   kept = store_bytes_ + SizeOf(m) <= kStoreBytesMax;
                   if (kept && store_requests_.emplace(m.request_id, m).second) store_bytes_ += SizeOf(m);
                 },
                 [&](const contract::CheckpointCommit& m) {
                   kept = commits_.size() < kCommitsMax;
                   if (kept) commits_.emplace(m.request_id, m);
                 },
                 [&](const contract::UpdateResult& m) { update_result_ = m; },
                 [&](const contract::Fatal& m) { fatal_ = m; },
                 [](const auto&) {},
             },
             message);
  return kept;
}

bool KeptMessages::TakeReply(const contract::Message& message) {
  if (const auto* reply = std::get_if<contract::StoreReply>(&message)) {
    auto it = store_requests_.find(reply->request_id);
    if (it == store_requests_.end()) return false;
    store_bytes_ -= SizeOf(it->second);
    store_requests_.erase(it);
    return true;
  }
  if (const auto* reply = std::get_if<contract::CheckpointCommitReply>(&message)) {
    return commits_.erase(reply->request_id) > 0;
  }
  return true;
}

std::vector<contract::Message> KeptMessages::All() const {
  std::vector<contract::Message> all;
  if (started_.has_value()) all.push_back(*started_);
  if (ready_.has_value()) all.push_back(*ready_);
  all.insert(all.end(), progress_.begin(), progress_.end());
  for (const auto& [id, request] : store_requests_) all.push_back(request);
  for (const auto& [id, commit] : commits_) all.push_back(commit);
  if (update_result_.has_value()) all.push_back(*update_result_);
  if (!fatal_.failure_class.empty()) all.push_back(fatal_);
  return all;
}

std::optional<contract::Progress> KeptMessages::newest_progress() const {
  if (progress_.empty()) return std::nullopt;
  return progress_.back();
}

}  // namespace llmctl::shim
