#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"
#include "worker/agent/core/transitions.h"

namespace llmctl::agent {
namespace {

bool IsValidRequestId(int64_t id) { return id > 0 && id < kRequestIdLimit; }

std::string RequestIdError(int64_t id) {
  return absl::StrCat("request_id ", id, " is not in 1..", kRequestIdLimit - 1);
}

void SendStoreCall(const State& state, const GenerationId& id, int rank, contract::StoreRequest request,
                   Commands& out) {
  if (!state.welcomed) return;
  request.request_id = WireRequestId(rank, request.request_id);
  out.push_back(SendToCoordinator{StoreCall{.generation = id, .request = std::move(request)}});
}

void KeepOwnSet(Gang& gang, const contract::StoreRequest& request) {
  switch (request.operation) {
    case contract::StoreOperation::kSet: gang.own_sets[request.key] = request.value; return;
    case contract::StoreOperation::kDelete: gang.own_sets.erase(request.key); return;
    // A repeated add or compare-set would not mean the same; get and wait change nothing.
    case contract::StoreOperation::kAdd:
    case contract::StoreOperation::kCompareSet:
    case contract::StoreOperation::kGet:
    case contract::StoreOperation::kWait: return;
  }
}

void TakeStoreRequest(State& state, const ShimMessage& from, const contract::StoreRequest& request, Commands& out) {
  if (!IsValidRequestId(request.request_id)) {
    contract::StoreReply reply = {.request_id = request.request_id, .error = RequestIdError(request.request_id)};
    out.push_back(SendToShim{.generation = from.generation, .rank = from.rank, .message = std::move(reply)});
    return;
  }
  Gang& gang = state.gangs.at(from.generation);
  // A shim repeats what is unanswered whenever an agent connects; we have sent it already.
  if (!gang.ranks.at(from.rank).unanswered.emplace(request.request_id, request).second) return;
  KeepOwnSet(gang, request);
  SendStoreCall(state, from.generation, from.rank, request, out);
}

void TakeCommit(State& state, const ShimMessage& from, contract::CheckpointCommit commit, Commands& out) {
  if (!IsValidRequestId(commit.request_id)) {
    contract::CheckpointCommitReply reply = {.request_id = commit.request_id,
                                             .error = RequestIdError(commit.request_id)};
    out.push_back(SendToShim{.generation = from.generation, .rank = from.rank, .message = std::move(reply)});
    return;
  }
  commit.request_id = WireRequestId(from.rank, commit.request_id);
  if (!state.outbox.emplace(std::pair(from.generation, commit.request_id), commit).second) return;
  out.push_back(PersistOutbox{});
  if (state.welcomed) out.push_back(SendToCoordinator{CommitOffer{.generation = from.generation, .commit = commit}});
}

}  // namespace

void HandleShimMessage(State& state, const ShimMessage& event, Commands& out) {
  Rank* rank = FindRank(state, event.generation, event.rank);
  if (rank == nullptr || rank->phase == RankPhase::kExited) return;
  std::visit(Overloaded{
                 [&](const contract::Started& m) {
                   rank->pid = m.pid;
                   TellGang(state, event.generation, out);
                 },
                 [&](const contract::Ready&) {
                   rank->phase = RankPhase::kRunning;
                   TellGang(state, event.generation, out);
                 },
                 [&](const contract::CaughtUp&) {
                   rank->catching_up = false;
                   DialWhenCaughtUp(state, out);
                 },
                 [&](const contract::Progress& m) {
                   if (!state.welcomed) return;
                   out.push_back(SendToCoordinator{
                       ProgressReport{.generation = event.generation, .rank = event.rank, .progress = m}});
                 },
                 [&](const contract::StoreRequest& m) { TakeStoreRequest(state, event, m, out); },
                 [&](const contract::CheckpointCommit& m) { TakeCommit(state, event, m, out); },
                 // Nobody here asks for updates yet; last words come again with the exit record.
                 [](const contract::UpdateResult&) {},
                 [](const contract::Fatal&) {},
                 // The shell has read the greeting and turned exits into RankExited.
                 [](const contract::Hello&) {},
                 [](const contract::Exited&) {},
                 // The last word of a standby before it was taken.
                 [](const contract::Waiting&) {},
                 // Only we send these.
                 [](const contract::Assignment&) {},
                 [](const contract::StoreReply&) {},
                 [](const contract::CheckpointRequest&) {},
                 [](const contract::CheckpointCommitReply&) {},
                 [](const contract::Yield&) {},
                 [](const contract::Update&) {},
                 [](const contract::Stop&) {},
                 [](const contract::Kill&) {},
                 [](const contract::Release&) {},
                 [](const contract::Take&) {},
                 [](const contract::TakePicture&) {},
             },
             event.message);
}

void PassStoreReply(State& state, const StoreAnswered& event, Commands& out) {
  int number = RankOfRequest(event.reply.request_id);
  Rank* rank = FindRank(state, event.generation, number);
  contract::StoreReply reply = event.reply;
  reply.request_id = TrainerRequestId(reply.request_id);
  if (rank == nullptr || rank->unanswered.erase(reply.request_id) == 0) return;
  out.push_back(SendToShim{.generation = event.generation, .rank = number, .message = std::move(reply)});
}

void PassCommitReply(State& state, const CommitAnswered& event, Commands& out) {
  if (state.outbox.erase({event.generation, event.reply.request_id}) == 0) return;
  out.push_back(PersistOutbox{});
  int number = RankOfRequest(event.reply.request_id);
  Rank* rank = FindRank(state, event.generation, number);
  if (rank == nullptr || rank->phase == RankPhase::kExited) return;
  contract::CheckpointCommitReply reply = event.reply;
  reply.request_id = TrainerRequestId(reply.request_id);
  out.push_back(SendToShim{.generation = event.generation, .rank = number, .message = std::move(reply)});
}

void SendUnansweredAgain(State& state, Commands& out) {
  for (const auto& [id, gang] : state.gangs) {
    for (const auto& [key, value] : gang.own_sets) {
      contract::StoreRequest request = {.operation = contract::StoreOperation::kSet, .key = key, .value = value};
      out.push_back(SendToCoordinator{StoreCall{.generation = id, .request = std::move(request)}});
    }
    for (const auto& [number, rank] : gang.ranks) {
      for (const auto& [request_id, request] : rank.unanswered) SendStoreCall(state, id, number, request, out);
    }
  }
  for (const auto& [key, commit] : state.outbox) {
    out.push_back(SendToCoordinator{CommitOffer{.generation = key.first, .commit = commit}});
  }
}

}  // namespace llmctl::agent
