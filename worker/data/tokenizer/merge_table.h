// Which two tokens become one, and how soon: (left, right) -> (rank, result). The hottest data of encoding, hence an
// open-addressed table of its own. Memory: 16 bytes a slot, 2 to 4 slots a merge, and 512 KB for the pairs of bytes.
// Constant after construction: any thread may read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/data/tokenizer/tokenizer_definition.h"

namespace llmctl::data {

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  struct Found {
    uint32_t rank = kNoRank;  // kNoRank: the two stay two
    int32_t result = -1;
  };

  explicit MergeTable(const TokenizerDefinition& definition);

  Found Find(int32_t left, int32_t right) const {
    uint64_t key = Key(left, right);
    for (size_t at = SlotOf(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.found;
      if (slot.key == kEmpty) return {};
    }
  }

  // Of two bytes of text, the pairs that every piece begins with.
  Found FindBytes(uint8_t left, uint8_t right) const { return of_bytes_[left << 8 | right]; }

  int32_t OfByte(uint8_t byte) const { return byte_ids_[byte]; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are not negative

  struct Slot {
    uint64_t key = kEmpty;
    Found found;
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // Multiplicative hashing: the high bits of the product depend on all of the key.
  size_t SlotOf(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::array<int32_t, 256> byte_ids_{};
  std::vector<Found> of_bytes_;
  std::vector<Slot> slots_;
  size_t mask_;
  int shift_;
};

}  // namespace llmctl::data
