// Words as spaCy's blank English pipeline splits them, which is what datatrove's filters count.
//
// spaCy cuts the text at white space and each *chunk* between by rules: whole chunks with words of their own ("don't"),
// prefixes and suffixes (one punctuation mark, "'s", a unit behind a digit), infixes (a hyphen between letters), and
// addresses, which stay whole. Afterwards neighbouring words that make a special case together (":" and ")") are joined
// again. The rules are spaCy 3.8's (spacy/tokenizer.pyx, lang/en, lang/punctuation.py), matched by hand instead of by
// regular expressions; tests/unit/text holds what spaCy itself answers.
//
// This is the rule for one chunk; WordReader reads whole texts, remembers chunks and joins. Const after construction,
// safe from any thread; about 300 KB.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/text/characters.h"

namespace llmctl::data {

class WordSplitter {
 public:
  // Words that become other words when they stand side by side without white space.
  struct Join {
    std::vector<std::string> from;
    std::vector<std::string> to;
  };

  WordSplitter();
  WordSplitter(const WordSplitter&) = delete;
  WordSplitter& operator=(const WordSplitter&) = delete;

  // Appends the words of `chunk`: valid UTF-8 without white space. They are pieces of `chunk`, in order, and together
  // they are all of it. Joins are not made.
  void SplitChunk(absl::string_view chunk, std::vector<absl::string_view>& words) const;

  absl::Span<const Join> joins() const { return joins_; }

 private:
  enum class Exceptions { kUse, kIgnore };

  void Split(absl::string_view chunk, Exceptions exceptions, std::vector<absl::string_view>& words) const;
  // Whether no rule but that of exceptions can cut it.
  bool IsPlain(absl::string_view chunk) const;
  void SplitInfixes(absl::string_view chunk, std::vector<absl::string_view>& words) const;
  // Lengths in bytes; 0 where nothing is cut off.
  size_t PrefixLength(absl::string_view text) const;
  size_t SuffixLength(absl::string_view text) const;
  size_t PeriodLength(absl::string_view text) const;
  size_t BehindDigitLength(absl::string_view text) const;
  size_t InfixLength(absl::string_view chunk, size_t at) const;
  bool HasInfix(absl::string_view chunk) const;
  // The lengths of the words of a special case; null if `text` is none.
  const std::vector<int>* FindException(absl::string_view text) const;

  const CharacterTable& table_;
  absl::flat_hash_map<std::string, std::vector<int>> exceptions_;
  absl::flat_hash_set<absl::string_view> behind_digit_;  // units, and currencies of several characters
  size_t exception_bytes_max_ = 0;
  std::vector<Join> joins_;
};

}  // namespace llmctl::data
