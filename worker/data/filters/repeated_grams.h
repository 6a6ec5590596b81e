// How much of a text its repeated n-grams of words make up, for n = 2, 3, ..., 10.
//
// An n-gram can only be repeated where its first n-1 words are. So each step looks at the places that are left from the
// step before: all of them at n = 2, a few in a hundred of ordinary prose at n = 5. An n-gram is known by the number of
// its first n-1 words' gram and its last word: a pair of 32-bit numbers, exact, with no text to compare.
//
// Scratch of one thread, kept from document to document: about 60 bytes per word of the largest one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "worker/data/text/word_reader.h"

namespace llmctl::data {

class RepeatedGrams {
 public:
  // `words` are ids of `reader`; both must stay until the last question. The n-grams are those of one word.
  void Begin(absl::Span<const uint32_t> words, const WordReader& reader);
  // On to the n-grams of one word more.
  void Advance();

  // Of the most frequent n-gram (the first of several): its length, with a space between words, times how often it
  // comes. 0 if there are fewer than n words.
  int64_t TopCharacters() const;
  // Characters in n-grams that came before: from left to right, a repeated one is counted and skipped, all others are
  // remembered. Words count without spaces.
  int64_t RepeatedCharacters();
  // The same when n-grams are equal whose words are the same characters put together, as datatrove has it. Looks at
  // every word; to be called once for each n in ascending order.
  int64_t RepeatedCharactersAsText();

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t value = 0;
    uint32_t round = 0;  // of Advance() or RepeatedCharactersAsText() that it was written in
  };
  struct Gram {
    uint32_t count = 0;
    uint32_t first = 0;  // place of the first one
  };

  void BeginRound(size_t entries);
  // The slot of `key`, free or not, from the slot `from` of an earlier call on.
  Slot& Find(uint64_t key);
  int64_t Characters(size_t first, size_t words) const { return characters_[first + words] - characters_[first]; }
  bool SameText(size_t a, size_t b) const;
  // Brings text_hashes_ to n words.
  void ExtendTextHashes();

  absl::Span<const uint32_t> words_;
  const WordReader* reader_ = nullptr;
  size_t n_ = 0;
  std::vector<int64_t> characters_;  // before word i
  std::vector<uint32_t> places_;     // of repeated n-grams, in order
  std::vector<uint32_t> grams_;      // index into all_grams_ of each of them
  std::vector<Gram> all_grams_;      // of this n, in order of first place
  std::vector<bool> seen_;           // by gram
  size_t text_hashes_n_ = 0;
  std::vector<uint64_t> text_hashes_;  // of the n words from i on

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  uint32_t round_ = 0;
};

}  // namespace llmctl::data
