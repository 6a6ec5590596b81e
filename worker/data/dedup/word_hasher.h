// The fast recipe's words: a hash of each, in one pass over the text, without ever writing the words down.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "worker/data/dedup/fold_table.h"

namespace llmctl::data {

// The words of one text, a bounded number at a time: memory does not depend on the document.
class WordHasher {
 public:
  // Both must outlive it. Text is valid UTF-8; of other bytes nothing is read past the end.
  WordHasher(const FoldTable& characters, absl::string_view text)
      : characters_(characters), at_(text.data()), end_(text.data() + text.size()) {}

  // The hashes of the next words, at most `count`; 0 at the end of the text.
  size_t Next(uint64_t* hashes, size_t count);

 private:
  // Reads the character at at_ (beyond ASCII) and moves past it.
  uint32_t NextEntry();

  const FoldTable& characters_;
  const char* at_;
  const char* end_;
  // A character that is a word of its own was met right after another word.
  uint32_t pending_ = 0;
};

}  // namespace llmctl::data
