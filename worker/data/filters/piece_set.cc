#include "worker/data/filters/piece_set.h"

#include <cstring>

#include <xxhash.h>

namespace llmctl::data {

void PieceSet::Begin() {
  count_ = 0;
  if (++set_ == 0) {  // numbers are used up: old slots would look like new ones
    slots_.assign(slots_.size(), Slot());
    set_ = 1;
  }
}

bool PieceSet::Add(absl::string_view piece) {
  uint64_t hash = XXH3_64bits(piece.data(), piece.size());
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].set == set_; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && absl::string_view(slot.data, slot.size) == piece) return false;
  }
  slots_[at] = {hash, piece.data(), static_cast<uint32_t>(piece.size()), set_};
  if (2 * ++count_ > slots_.size()) Grow();
  return true;
}

void PieceSet::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.set != set_) continue;
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].set == set_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

}  // namespace llmctl::data
