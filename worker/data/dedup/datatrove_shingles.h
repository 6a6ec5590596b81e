// datatrove's recipe, bit by bit (datatrove 0.10, utils/text.py and pipeline/dedup/minhash.py).
//
// The text is simplified: lower case, numbers "0", punctuation a space, white space one space, canonical decomposition
// without marks. It is split into words as spaCy's blank English does, and every shingle is the XXH64 of its words with
// a space between. Lower case and categories are those of ICU's version of Unicode; datatrove has those of its Python.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/dedup/shingle_source.h"

namespace llmctl::data {

// simplify_text() with its default configuration.
std::string SimplifyAsDatatrove(absl::string_view text);

class DatatroveShingles : public ShingleSource {
 public:
  DatatroveShingles(int shingle_words, SplitWords split_words)
      : shingle_words_(shingle_words), split_words_(std::move(split_words)) {}

  int64_t Read(absl::string_view text, ShingleScratch& scratch, Sink sink) const override;

 private:
  size_t shingle_words_;
  SplitWords split_words_;
};

}  // namespace llmctl::data
