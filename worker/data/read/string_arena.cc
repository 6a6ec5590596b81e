#include "worker/data/read/string_arena.h"

#include <algorithm>

namespace llmctl::data {
namespace {

constexpr size_t kBlockBytesMin = size_t{64} << 10;
// A block beyond this was for a giant: kept, it would cost its memory for good.
constexpr size_t kBlockBytesKept = size_t{4} << 20;

}  // namespace

void StringArena::Grow(size_t bytes) {
  size_t size = blocks_.empty() ? kBlockBytesMin : std::min(2 * blocks_.back().size, kBlockBytesKept);
  size = std::max(size, bytes);
  blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
  at_ = blocks_.back().bytes.get();
  left_ = size;
}

void StringArena::Clear() {
  adopted_.clear();
  Block kept;
  for (Block& block : blocks_) {
    if (block.size <= kBlockBytesKept && block.size > kept.size) kept = std::move(block);
  }
  blocks_.clear();
  at_ = nullptr;
  left_ = 0;
  if (kept.size == 0) return;
  at_ = kept.bytes.get();
  left_ = kept.size;
  blocks_.push_back(std::move(kept));
}

}  // namespace llmctl::data
