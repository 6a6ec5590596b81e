#include "worker/data/tokenizer/merge_table.h"

#include <bit>

namespace llmctl::data {

MergeTable::MergeTable(const TokenizerDefinition& definition) : of_bytes_(256 * 256) {
  size_t slots = std::bit_ceil(definition.merges.size() * 2 + 2);
  slots_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const Merge& merge = definition.merges[rank];
    uint64_t key = Key(merge.left, merge.right);
    size_t at = SlotOf(key);
    while (slots_[at].key != kEmpty) at = (at + 1) & mask_;
    slots_[at] = {key, {static_cast<uint32_t>(rank), merge.result}};
  }
  std::vector<bool> special(definition.tokens.size());
  for (const AddedToken& token : definition.added) special[token.id] = token.special;
  for (int32_t id = 0; id < definition.model_tokens; ++id) {
    const std::string& bytes = definition.tokens[id];
    if (bytes.size() == 1 && !special[id]) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  }
  for (int left = 0; left < 256; ++left) {
    for (int right = 0; right < 256; ++right) {
      of_bytes_[left << 8 | right] = Find(byte_ids_[left], byte_ids_[right]);
    }
  }
}

}  // namespace llmctl::data
