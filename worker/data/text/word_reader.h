// The words of a document as numbers.
//
// Text repeats itself: most chunks between white space have been seen before, and most words. A WordReader splits a
// chunk once and then knows it, so that reading costs one look-up per chunk, and each distinct word has one id with
// what the filters ask about it worked out beforehand. One table holds both, as most chunks are words; texts of up to
// 16 bytes are held in its slots as two numbers, so that a look-up touches one line of the processor's cache.
//
// Scratch of one thread, kept from document to document. Ids are good until the next document is begun: when the
// tables have grown past their budget, Begin() empties them. Nothing that is read depends on what was read before.
// Memory: about 120 bytes per distinct word and 70 per other distinct chunk, and their text; at most the budget and
// what one document adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/text/characters.h"
#include "worker/data/text/word_joins.h"
#include "worker/data/text/word_splitter.h"

namespace llmctl::data {

// Arithmetic modulo the prime 2^61 - 1, for hashes of concatenated words.
inline uint64_t MultiplyModPrime(uint64_t a, uint64_t b) {
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  uint64_t sum = (static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}
inline uint64_t AddModPrime(uint64_t a, uint64_t b) {
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

struct Word {
  enum Trait : uint8_t {
    kHasLetter = 1,
    kHasNonSymbol = 2,    // anything but punctuation in datatrove's sense
    kEndsSentence = 4,    // is one of the sentencizer's marks
    kIsPunctuation = 8,   // category P throughout
  };
  absl::string_view text;
  uint32_t characters = 0;
  uint8_t traits = 0;
  uint16_t part = 0;      // of WordJoins
  uint16_t mark = 0;      // index + 1 in the list of marked words, or 0
  // hash(a b) of two concatenated words = hash(a) * power(b) + hash(b), modulo 2^61 - 1.
  uint64_t hash = 0;
  uint64_t power = 0;
};

class WordReader {
 public:
  struct Options {
    size_t bytes_max = size_t{16} << 20;    // of the tables, when a document is begun
    std::vector<std::string> marked_words;  // whose Word::mark says so
  };

  // `splitter` must outlive this.
  WordReader(const WordSplitter& splitter, Options options);
  WordReader(const WordReader&) = delete;
  WordReader& operator=(const WordReader&) = delete;

  // Forgets what is over budget. Ids given before are no longer good.
  void Begin();

  // The words of `text` (valid UTF-8), replacing what was in `words`.
  void ReadWords(absl::string_view text, std::vector<uint32_t>& words);
  // How many sentences spaCy's rule finds in `text`; at least 1. Stops counting at `at_most`.
  int64_t CountSentences(absl::string_view text, int64_t at_most);

  const Word& word(uint32_t id) const { return words_[id]; }
  size_t bytes() const { return bytes_; }

 private:
  // A token is a word's id, with two bits of where it stands.
  static constexpr uint32_t kStartsChunk = uint32_t{1} << 31;
  static constexpr uint32_t kIsPart = uint32_t{1} << 30;  // its Word::part is not 0
  static constexpr uint32_t kIdMask = kIsPart - 1;
  // White space that is a token to spaCy, though no word.
  static constexpr uint32_t kBlank = 0;

  struct Key {  // what a text is found by
    uint64_t first = 0;  // of up to 16 bytes: all of them, in two overlapping halves
    uint64_t last = 0;   // of more: the hash and the address
    uint32_t size = 0;
    uint64_t hash = 0;
  };
  struct alignas(32) Slot {
    uint64_t first = 0;
    uint64_t last = 0;
    uint32_t size = 0;    // 0: free
    uint32_t id = 0;      // as a word; 0 if it has not been one
    uint32_t tokens = 0;  // as a chunk: the token itself if there is one, else where they begin in chunk_tokens_
    uint32_t count = 0;   // of the tokens; 0 if it has not been a chunk
  };
  // A chunk that is to be read, and whether white space that is a token stands before it.
  struct Pending {
    absl::string_view chunk;
    Key key;
    bool after_blank = false;
  };

  static Key KeyOf(absl::string_view text);
  static void Hash(Key& key);
  static absl::string_view LongTextOf(const Slot& slot);
  void ReadTokens(absl::string_view text);
  void Await(absl::string_view chunk, bool after_blank);
  void ReadPending();
  void ReadChunk(absl::string_view chunk, const Key& key);
  void SplitChunk(absl::string_view chunk);
  uint32_t IdOf(absl::string_view word);
  // The slot of `text`, a new one if there is none yet. Good until the next call.
  Slot& SlotOf(absl::string_view text, const Key& key);
  Word Describe(absl::string_view word) const;
  absl::string_view Keep(absl::string_view text);
  void GrowSlots();
  void Reset();
  void JoinTokens();
  bool MayJoin(size_t first, size_t end) const;
  size_t JoinRun(size_t first, size_t end, size_t copied);

  const CharacterTable& table_;
  const WordSplitter& splitter_;
  const WordJoins joins_;
  const Options options_;
  absl::flat_hash_map<std::string, uint16_t> marks_;

  std::vector<Slot> slots_;  // open addressing, a power of two
  size_t slot_count_ = 0;
  std::vector<uint32_t> chunk_tokens_;
  std::vector<Word> words_;    // by id; 0 is kBlank
  std::deque<std::string> texts_;  // blocks that hold the text of words and long chunks
  size_t bytes_ = 0;

  std::vector<uint32_t> tokens_;  // of the text that is read
  std::vector<Pending> pending_;
  // Scratch.
  std::vector<absl::string_view> pieces_;
  std::vector<uint32_t> joined_;
};

}  // namespace llmctl::data
