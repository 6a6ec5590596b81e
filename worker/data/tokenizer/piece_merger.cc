#include "worker/data/tokenizer/piece_merger.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

size_t PieceMerger::Merge(absl::string_view piece, int32_t* out) {
  if (piece.size() == 1) {
    out[0] = table_.OfByte(static_cast<uint8_t>(piece[0]));
    return 1;
  }
  return piece.size() <= kShort ? MergeShort(piece, out) : MergeLong(piece, out);
}

size_t PieceMerger::MergeShort(absl::string_view piece, int32_t* out) {
  std::array<MergeTable::Found, kShort> pairs;  // of out[i] and out[i + 1]
  size_t count = piece.size();
  for (size_t i = 0; i + 1 < count; ++i) {
    out[i] = table_.OfByte(static_cast<uint8_t>(piece[i]));
    pairs[i] = table_.FindBytes(static_cast<uint8_t>(piece[i]), static_cast<uint8_t>(piece[i + 1]));
  }
  out[count - 1] = table_.OfByte(static_cast<uint8_t>(piece[count - 1]));
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == MergeTable::kNoRank) break;
    out[best] = pairs[best].result;
    std::memmove(out + best + 1, out + best + 2, (count - best - 2) * sizeof out[0]);
    --count;
    if (best + 1 < count) {
      std::memmove(&pairs[best], &pairs[best + 1], (count - best - 1) * sizeof pairs[0]);
      pairs[best] = table_.Find(out[best], out[best + 1]);
    }
    if (best > 0) pairs[best - 1] = table_.Find(out[best - 1], out[best]);
  }
  return count;
}

void PieceMerger::FillNodes(absl::string_view piece) {
  CHECK_LT(piece.size(), size_t{kNone}) << "a piece is part of a document, which is smaller";
  uint32_t count = static_cast<uint32_t>(piece.size());
  nodes_.resize(count);
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t byte = static_cast<uint8_t>(piece[i]);
    nodes_[i] = {table_.OfByte(byte), i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, MergeTable::kNoRank};
    if (i + 1 == count) break;
    nodes_[i].rank = table_.FindBytes(byte, static_cast<uint8_t>(piece[i + 1])).rank;
    if (nodes_[i].rank != MergeTable::kNoRank) heap_.push_back(uint64_t{nodes_[i].rank} << 32 | i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// After `at` or its next has become another token.
void PieceMerger::Rank(uint32_t at) {
  Node& node = nodes_[at];
  node.rank = node.next == kNone ? MergeTable::kNoRank : table_.Find(node.id, nodes_[node.next].id).rank;
  if (node.rank == MergeTable::kNoRank) return;
  heap_.push_back(uint64_t{node.rank} << 32 | at);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

size_t PieceMerger::MergeLong(absl::string_view piece, int32_t* out) {
  FillNodes(piece);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    uint32_t at = static_cast<uint32_t>(heap_.back());
    uint32_t rank = static_cast<uint32_t>(heap_.back() >> 32);
    heap_.pop_back();
    Node& node = nodes_[at];
    if (node.id < 0 || node.rank != rank) continue;
    Node& gone = nodes_[node.next];
    node.id = table_.Find(node.id, gone.id).result;
    gone.id = -1;
    node.next = gone.next;
    if (node.next != kNone) nodes_[node.next].previous = at;
    Rank(at);
    if (node.previous != kNone) Rank(node.previous);
  }
  size_t count = 0;
  for (uint32_t at = 0; at != kNone; at = nodes_[at].next) out[count++] = nodes_[at].id;
  return count;
}

}  // namespace llmctl::data
