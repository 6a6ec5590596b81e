#include "worker/data/perplexity/ngram_vocabulary.h"

#include <algorithm>
#include <cstring>

namespace llmctl::data {

NgramVocabulary::NgramVocabulary() {
  for (absl::string_view special : {"<unk>", "<s>", "</s>"}) IdOf(special);
}

uint32_t NgramVocabulary::IdOf(absl::string_view word) {
  auto found = ids_.find(word);
  if (found != ids_.end()) return found->second;
  const uint32_t id = size();
  words_.push_back(Keep(word));
  ids_.emplace(words_.back(), id);
  return id;
}

absl::string_view NgramVocabulary::Keep(absl::string_view word) {
  constexpr size_t kBlockBytes = 64 << 10;
  if (word.size() > block_left_) {
    block_left_ = std::max(kBlockBytes, word.size());
    blocks_.push_back(std::make_unique<char[]>(block_left_));
    block_at_ = blocks_.back().get();
  }
  std::memcpy(block_at_, word.data(), word.size());
  absl::string_view kept(block_at_, word.size());
  block_at_ += word.size();
  block_left_ -= word.size();
  letters_ += word.size();
  return kept;
}

}  // namespace llmctl::data
