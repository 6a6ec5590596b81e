#include "worker/data/tokenizer/char_class.h"

#include <limits>
#include <map>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

CharClassTable::CharClassTable() {
  std::map<std::vector<uint8_t>, uint16_t> known;
  absl::Span<const CharRange> ranges = CharClassRanges();
  size_t next = 0;
  for (uint32_t first = 0; first < kCodePoints; first += kBlockSize) {
    std::vector<uint8_t> block(kBlockSize);
    for (; next < ranges.size() && ranges[next].first < first + kBlockSize; ++next) {
      uint32_t from = std::max(ranges[next].first, first);
      uint32_t to = std::min(ranges[next].last, first + kBlockSize - 1);
      for (uint32_t c = from; c <= to; ++c) block[c - first] = static_cast<uint8_t>(ranges[next].char_class);
      if (ranges[next].last >= first + kBlockSize) break;  // goes on in the next block
    }
    auto [at, is_new] = known.emplace(block, static_cast<uint16_t>(blocks_.size()));
    if (is_new) {
      CHECK_LE(blocks_.size(), size_t{std::numeric_limits<uint16_t>::max()}) << "an offset must fit its 16 bits";
      blocks_.insert(blocks_.end(), block.begin(), block.end());
    }
    block_of_.push_back(at->second);
  }
}

CharClassTable::Char CharClassTable::AtMultibyte(const char* at, const char* end) const {
  uint8_t lead = static_cast<uint8_t>(*at);
  size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || static_cast<size_t>(end - at) < bytes) return {CharClass::kOther, 1};
  uint32_t code_point = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!IsContinuation(at[i])) return {CharClass::kOther, 1};
    code_point = code_point << 6 | (static_cast<uint8_t>(at[i]) & 0x3Fu);
  }
  if (code_point >= kCodePoints) return {CharClass::kOther, 1};
  return {Of(code_point), static_cast<uint8_t>(bytes)};
}

}  // namespace llmctl::data
