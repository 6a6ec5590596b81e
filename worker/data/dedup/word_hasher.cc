#include "worker/data/dedup/word_hasher.h"

namespace llmctl::data {
namespace {

constexpr uint64_t kStart = 0x2d358dccaa6c78a5;
constexpr uint64_t kStep = 0x8bb84b93962eacc9;

uint64_t Finish(uint64_t hash) {
  hash = (hash ^ (hash >> 32)) * kStart;
  return hash ^ (hash >> 29);
}

}  // namespace

uint32_t WordHasher::NextEntry() {
  uint8_t lead = static_cast<uint8_t>(*at_++);
  int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  uint32_t code_point = lead & (0x3f >> more);
  for (; more > 0 && at_ < end_; --more) code_point = code_point << 6 | (static_cast<uint8_t>(*at_++) & 0x3f);
  return code_point <= 0x10ffff ? characters_[code_point] : FoldTable::kGap;
}

size_t WordHasher::Next(uint64_t* hashes, size_t count) {
  const std::array<uint8_t, 128>& ascii = characters_.ascii();
  size_t found = 0;
  uint64_t hash = kStart;
  uint32_t last = FoldTable::kGap;  // kGap between words
  auto end_word = [&] {
    if (last == FoldTable::kGap) return;
    hashes[found++] = Finish(hash);
    hash = kStart;
    last = FoldTable::kGap;
  };
  if (pending_ != 0 && count > 0) {
    hashes[found++] = Finish((kStart ^ pending_) * kStep);
    pending_ = 0;
  }
  while (at_ < end_ && found < count) {
    uint8_t byte = static_cast<uint8_t>(*at_);
    uint32_t entry = byte < 128 ? (++at_, ascii[byte]) : NextEntry();
    if (entry == FoldTable::kNothing) continue;
    if (entry == FoldTable::kGap) {
      end_word();
    } else if (entry & FoldTable::kAlone) {
      end_word();
      if (found == count) {
        pending_ = entry;
      } else {
        hashes[found++] = Finish((kStart ^ entry) * kStep);
      }
    } else if (entry != FoldTable::kDigit || last != FoldTable::kDigit) {  // a run of digits is one '0'
      hash = (hash ^ entry) * kStep;
      last = entry;
    }
  }
  end_word();
  return found;
}

}  // namespace llmctl::data
