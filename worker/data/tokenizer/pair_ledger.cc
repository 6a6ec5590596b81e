#include "worker/data/tokenizer/pair_ledger.h"

#include <algorithm>

namespace llmctl::data {

absl::optional<size_t> PairLedger::Enter(TokenPair pair, size_t places) {
  int64_t count = counts_[Key(pair)];
  if (count <= 0) return absl::nullopt;
  size_t first = places_.size();
  places_.resize(first + places);
  queue_.push_back({count, Key(pair), first, static_cast<uint32_t>(places)});
  std::push_heap(queue_.begin(), queue_.end());
  return first;
}

absl::optional<PairLedger::Top> PairLedger::TakeTop() {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    Entry& top = queue_.back();
    int64_t present = counts_[top.key];
    if (top.count != present) {
      top.count = present;
      std::push_heap(queue_.begin(), queue_.end());
      continue;
    }
    Top taken = {{static_cast<int32_t>(top.key >> 32), static_cast<int32_t>(top.key)},
                 top.count,
                 absl::MakeConstSpan(places_).subspan(top.first_place, top.places)};
    queue_.pop_back();
    return taken;
  }
  return absl::nullopt;
}

}  // namespace llmctl::data
