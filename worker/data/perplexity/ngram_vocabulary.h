// The words of a text, numbered as they come. 0 is <unk>, 1 <s>, 2 </s>.
// Memory: at most 72 bytes a word and its letters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

inline constexpr uint32_t kUnknownId = 0;
inline constexpr uint32_t kBeginId = 1;
inline constexpr uint32_t kEndId = 2;
inline constexpr uint32_t kSpecialIds = 3;

class NgramVocabulary {
 public:
  NgramVocabulary();

  // The number of a word, given now if it is new.
  uint32_t IdOf(absl::string_view word);
  absl::string_view word(uint32_t id) const { return words_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(words_.size()); }
  uint64_t memory_bytes() const { return letters_ + 72 * uint64_t{words_.size()}; }

 private:
  absl::string_view Keep(absl::string_view word);

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_at_ = nullptr;
  uint64_t letters_ = 0;
  absl::flat_hash_map<absl::string_view, uint32_t> ids_;
  std::vector<absl::string_view> words_;  // by id
};

}  // namespace llmctl::data
