// An n-gram language model with back-off, in memory: what an ARPA file says, to score text with.
//
// The probability of a word is that of the longest n-gram that ends with it, times the back-off weights of the longer
// contexts that were passed over: the same numbers as KenLM's, to the bit for each word. Words that the model does not
// have are "<unk>"; a model without "<unk>" gives them 10^-100, as KenLM does.
//
// Constant after loading: any thread may score, each with an NgramScorer of its own.
// Memory: 23 bytes an n-gram, 18 for one of the highest order (gram_table.h). Words are kept as hashes only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/perplexity/arpa_reader.h"
#include "worker/data/perplexity/gram_table.h"

namespace llmctl::data {

// What a word is to a model. Words are hashed once, by whoever scores them.
uint64_t WordHash(absl::string_view word);

class NgramModel {
 public:
  // InvalidArgument names file and line: an n-gram given twice, one whose context (all words but the last) is missing
  // or has no back-off weight, a word that is no 1-gram, no <s> or no </s>.
  static absl::StatusOr<NgramModel> Load(ArpaReader& reader);
  static absl::StatusOr<NgramModel> LoadFile(const std::string& path);

  int order() const { return order_; }
  // N-grams of an order, those included that are there only because a longer one ends with them.
  uint64_t count(int order) const;
  uint64_t memory_bytes() const;
  bool Knows(absl::string_view word) const { return shorter_[0].Find(GramKeyOf(WordHash(word))) != nullptr; }

 private:
  friend class NgramLoader;
  friend class NgramScorer;

  NgramModel() = default;

  int order_ = 0;
  std::vector<GramTable<GramWithBackoff>> shorter_;  // 1-grams first; 1-grams are here even if they are the highest
  GramTable<GramWithoutBackoff> longest_;
  GramWithBackoff unknown_{};
  uint64_t unknown_hash_ = 0;
};

struct WordScore {
  float log_probability = 0;  // base 10
  int matched = 0;            // words of the longest n-gram that ends here
  bool known = true;
};

struct TextScore {
  double log_probability = 0;  // base 10, of all lines with their ends
  uint64_t length = 0;         // words, and 1 for each line's end
  uint64_t unknown = 0;        // words that the model does not have

  // 10^(-log_probability / length): what the model takes a word for on average. 0 for nothing at all.
  double Perplexity() const;
};

// Collects lines of words and scores them together, so that the memory's delay for one word passes while others are
// looked up. Keeps its buffers. Not thread-safe; the model outlives it.
class NgramScorer {
 public:
  explicit NgramScorer(const NgramModel& model);

  // Forgets all words.
  void Clear();
  // A line stands between <s>, which is not scored, and </s>, which is. `whole` false: neither, as for a fragment.
  void BeginLine(bool whole = true);
  void AddWord(absl::string_view word) { AddWordHash(WordHash(word)); }
  void AddWordHash(uint64_t hash);
  void EndLine(bool whole = true);

  TextScore Score();
  // The same, and each score in turn.
  TextScore Score(absl::FunctionRef<void(const WordScore&)> each);

 private:
  // Words under way: looked up as 1-grams, with their longer n-grams on their way from memory.
  static constexpr size_t kRing = 32;
  static constexpr size_t kAheadWords = 16;
  static constexpr size_t kAheadGrams = 8;
  static_assert(kAheadWords + kNgramOrderMax < kRing);
  struct Slot {
    uint64_t hash;  // of the word, or of <unk>
    GramWithBackoff gram;
    uint64_t keys[kNgramOrderMax];  // of the n-grams that end here, by words - 1
    bool known;
  };
  // What the words so far leave behind for the next.
  struct Context {
    int words = 0;                   // that can matter
    float backoffs[kNgramOrderMax];  // by words - 1
  };

  void Push(uint64_t hash, uint8_t context);
  Slot& slot(size_t at) { return ring_[at % kRing]; }
  void LookUpWord(size_t at);
  void FetchGrams(size_t at);
  WordScore ScoreWord(size_t at);
  template <typename Each>
  TextScore ScoreAll(Each each);

  static constexpr uint8_t kNotScored = 255;

  const NgramModel& model_;
  const uint64_t begin_hash_;
  const uint64_t end_hash_;
  uint8_t next_context_ = 0;
  std::vector<uint64_t> hashes_;
  std::vector<uint8_t> contexts_;  // words before it on its line, at most order - 1; or kNotScored
  Context context_;
  Slot ring_[kRing];
};

}  // namespace llmctl::data
