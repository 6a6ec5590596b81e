#include "worker/data/tokenizer/piece_cache.h"

#include <algorithm>
#include <bit>

namespace llmctl::data {

static_assert(std::endian::native == std::endian::little, "a key's bytes lie in memory as the piece's do");

PieceCache::PieceCache(size_t bytes)
    : lines_(std::bit_floor(std::max<size_t>(2, bytes / sizeof(Line)))),
      shift_(64 - std::countr_zero(lines_.size())) {}

}  // namespace llmctl::data
